// The part of the page's address that names a query.

/**
 * Return the fragment of a query. The slash distinguishes it from ids of elements: browsers
 * scroll to those and move the focus.
 */
export const addressOf = (id) => `#/${encodeURIComponent(id)}`;

/** Return the id in a fragment, with or without the slash, or null. */
export function idIn(fragment) {
  try {
    return decodeURIComponent(fragment.replace(/^#\/?/, "")) || null;
  } catch {
    return null;
  }
}
