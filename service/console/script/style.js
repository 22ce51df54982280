/**
 * Stylesheets of single pages, loaded with them.
 * @module
 */

/**
 * Load a stylesheet once.
 * @param {string} name of the file, without its ending
 */
export function stylesheet(name) {
  const href = `/console/style/${name}.css`;
  if (document.head.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}
