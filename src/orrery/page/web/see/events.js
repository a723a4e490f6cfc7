// Server-sent events of an answer that was asked for with a body or a key, which EventSource cannot send.

/**
 * Yield what each event says, as JSON, as soon as it is there.
 * @param {Response} answer
 */
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (held + (value ?? "")).split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const said = part.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (said && said !== "[DONE]") yield JSON.parse(said);
    }
    if (done) return;
  }
}
