// Presses of buttons and links, with a pointer or a key.

const PRESSED = "a, button, summary";

/** Call `began` when a pointer or the space bar is pressed, and `ended` when it is released. */
export function watchPresses(began, ended) {
  document.addEventListener("pointerdown", (event) => event.button === 0 && began());
  document.addEventListener("keydown", (event) => event.key === " " && event.target.closest(PRESSED) && began());
  for (const name of ["pointerup", "pointercancel", "contextmenu", "keyup"]) document.addEventListener(name, ended);
  // Notice a release without an event, as on some scroll bars.
  document.addEventListener("pointermove", (event) => event.buttons === 0 && ended());
  window.addEventListener("blur", ended);
}

/** Let Enter press a button only once while it is held: a second press could undo the first. */
export function pressOnce() {
  document.addEventListener("keydown", (event) => {
    if (event.repeat && event.key === "Enter" && event.target.closest(PRESSED)) event.preventDefault();
  });
}
