// Reordering of an element's children without rebuilding them.

/** Give a parent exactly these children, in this order. Selected text stays selected. */
export function arrange(parent, children) {
  const wanted = new Set(children);
  for (const each of [...parent.children]) if (!wanted.has(each)) each.remove();
  const restore = selectionIn(parent);
  children.forEach((each, at) => {
    if (parent.children[at] !== each) parent.insertBefore(each, parent.children[at] ?? null);
  });
  restore();
}

/** Return a function that restores the selection within an element: moving a node drops it. */
function selectionIn(parent) {
  const selection = document.getSelection();
  const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
  if (isCollapsed || !(parent.contains(anchorNode) || parent.contains(focusNode))) return () => {};
  return () => {
    if (selection.anchorNode === anchorNode && selection.focusNode === focusNode) return;
    if (anchorNode.isConnected && focusNode.isConnected) {
      selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
    }
  };
}
