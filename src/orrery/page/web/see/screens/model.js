// The model itself, without a text: what it consists of, how it is built, what it costs.
import { draw as stage } from "#see/screens/inside.js";

/** Draw the screen; returns what ends it. */
export const draw = (element, page) => stage(element, page, { screen: "model", reads: false });
