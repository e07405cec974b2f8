// Builders of elements from names, properties and children. Text is never interpreted as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

export const h = (tag, properties, ...children) => filled(document.createElement(tag), properties, children);

export const svg = (tag, properties, ...children) =>
  filled(document.createElementNS(SVG, tag), properties, children);

export const byId = (id) => document.getElementById(id);

/** Set an element's text, unless it is the same already. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an attribute, or remove it if the value is null. */
export function mark(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}
