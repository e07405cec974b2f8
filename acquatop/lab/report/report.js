// Shows and hides policies, in pictures and tables.
for (const box of document.querySelectorAll("[data-toggles]")) {
  const policy = box.dataset.toggles;
  const rows = [...document.querySelectorAll("tbody tr")].filter(
    (row) => row.firstElementChild.textContent === policy,
  );
  const panels = [...document.querySelectorAll("[data-policy]")].filter(
    (panel) => panel.dataset.policy === policy,
  );
  box.addEventListener("change", () => {
    for (const shown of [...rows, ...panels]) shown.style.display = box.checked ? "" : "none";
  });
}
