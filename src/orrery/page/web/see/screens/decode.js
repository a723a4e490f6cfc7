// What decoding does behind a text: its tree, and the memory that it takes.
import { draw as stage } from "#see/screens/inside.js";

/** Draw the screen; returns what ends it. */
export const draw = (element, page) => stage(element, page, { screen: "decode" });
