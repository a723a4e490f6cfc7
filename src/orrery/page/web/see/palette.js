// Colours of numbers. Each palette has 256 different colours, so that a number can be read back from its pixel.

const ANCHORS = {
  // Light to dark in one hue on a light page, dark to light on a dark one.
  weight: { light: [[253, 253, 252], [189, 215, 240], [92, 153, 209], [24, 96, 160], [6, 42, 84]], dark: [[20, 23, 27], [24, 58, 92], [32, 104, 164], [98, 168, 228], [226, 242, 255]] },
  // Bahdanau et al. 2015, figure 3: black is 0 and white is 1.
  grey: { light: [[0, 0, 0], [255, 255, 255]], dark: [[0, 0, 0], [255, 255, 255]] },
  // Below and above zero: blue and orange, told apart by colour-blind readers.
  signed: { light: [[12, 66, 128], [110, 166, 214], [250, 250, 248], [240, 160, 88], [150, 62, 4]], dark: [[126, 190, 250], [38, 92, 144], [24, 27, 31], [150, 84, 30], [255, 190, 120]] },
};

/** @returns {Uint8Array} 256 colours, three bytes each */
export function palette(name, scheme) {
  const anchors = ANCHORS[name][scheme];
  const colours = new Uint8Array(768);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (anchors.length - 1);
    const low = Math.min(Math.floor(place), anchors.length - 2);
    for (let c = 0; c < 3; c++) colours[3 * i + c] = Math.round(anchors[low][c] + (place - low) * (anchors[low + 1][c] - anchors[low][c]));
  }
  return colours;
}

/** The place, 0 to 255, of a number in a palette that runs from `lowest` to `highest`. */
export function place(value, lowest, highest) {
  if (!(highest > lowest)) return 0;
  return Math.max(0, Math.min(255, Math.round((255 * (value - lowest)) / (highest - lowest))));
}

/** "light" or "dark": what the reader chose, else what the system says. */
export function scheme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
