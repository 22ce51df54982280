/**
 * Colours of the theme in force, for canvases.
 * @module
 */

/**
 * A colour of the theme in force, for canvases.
 * @param {string} name without its dashes
 * @returns {string}
 */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
