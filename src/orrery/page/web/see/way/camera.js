// A camera over a drawing: the wheel, two fingers, a drag, buttons and keys move it and come closer.
const [NEAREST, FARTHEST] = [6, 0.05];

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{width: number, height: number, changed: () => void}} scene the size of the drawing, and what draws it
 */
export function camera(canvas, { width, height, changed }) {
  const now = { x: width / 2, y: 0, scale: 1 };
  const fingers = new Map();
  const room = () => ({ across: canvas.clientWidth || 1, down: canvas.clientHeight || 1 });
  const least = () => Math.max(FARTHEST, Math.min(room().across / width, room().down / height));

  /** Look at a place; nothing but the drawing can be looked at. */
  function look(x, y, scale = now.scale) {
    now.scale = Math.max(least(), Math.min(NEAREST, scale));
    now.x = Math.max(0, Math.min(width, x));
    now.y = Math.max(0, Math.min(height, y));
    changed();
  }

  /** Come closer to a point of the canvas, which stays where it is. */
  function closer(by, at = { x: room().across / 2, y: room().down / 2 }) {
    const before = { x: now.x + (at.x - room().across / 2) / now.scale, y: now.y + (at.y - room().down / 2) / now.scale };
    const scale = Math.max(least(), Math.min(NEAREST, now.scale * by));
    look(before.x - (at.x - room().across / 2) / scale, before.y - (at.y - room().down / 2) / scale, scale);
  }

  const place = (event) => ({ x: event.offsetX, y: event.offsetY });
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return { size: Math.hypot(a.x - b.x, a.y - b.y) || 1, at: { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 } };
  };
  canvas.addEventListener("wheel", (event) => (event.preventDefault(), closer(Math.exp(-event.deltaY / 400), place(event))), { passive: false });
  canvas.addEventListener("pointerdown", (event) => (canvas.setPointerCapture(event.pointerId), fingers.set(event.pointerId, place(event))));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const was = fingers.get(event.pointerId);
    if (!was) return;
    const to = place(event);
    const before = fingers.size > 1 ? apart() : null;
    fingers.set(event.pointerId, to);
    if (before) closer(apart().size / before.size, before.at);
    else look(now.x - (to.x - was.x) / now.scale, now.y - (to.y - was.y) / now.scale);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = 60 / now.scale;
    const moves = { ArrowUp: [0, -step], ArrowDown: [0, step], ArrowLeft: [-step, 0], ArrowRight: [step, 0] };
    if (event.key in moves) look(now.x + moves[event.key][0], now.y + moves[event.key][1]);
    else if (event.key === "+" || event.key === "=") closer(1.25);
    else if (event.key === "-") closer(0.8);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { now, look, closer, whole: () => look(width / 2, height / 2, least()), top: () => look(width / 2, (room().down * width) / room().across / 2, room().across / width) };
}
