// Talks to the server: OpenAI's chat completions, and the engine's state.

const KEY = "akunu.key", ADMIN_KEY = "akunu.admin-key";
let askForKey = async () => null;
let declined = false; // the administrator's key, which is asked for once

/** `ask` gets whether it is the administrator's key that is wanted; it returns the key, or null. */
export const onKeyWanted = (ask) => { askForKey = ask; };

/** Ask for the administrator's key again. */
export const askAgain = () => { declined = false; };

export class ApiError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

async function request(path, options = {}) {
  const admin = path.startsWith("admin/") || path === "api/pull";
  for (;;) {
    const key = (admin && sessionStorage.getItem(ADMIN_KEY)) || sessionStorage.getItem(KEY);
    const headers = { ...(typeof options.body === "string" && { "Content-Type": "application/json" }), ...(key && { Authorization: `Bearer ${key}` }) };
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server does not answer. Is it running?");
    }
    if (response.status === 401) {
      const given = admin && declined ? null : await askForKey(admin);
      if (!given) {
        declined ||= admin;
        throw new ApiError(admin ? "This needs an administrator's key." : "The server wants an API key.", "key_wanted");
      }
      sessionStorage.setItem(admin ? ADMIN_KEY : KEY, given);
      continue;
    }
    if (response.ok) return response;
    const text = await response.text();
    let said = text, code;
    try {
      const { error } = JSON.parse(text);
      ({ message: said, code } = typeof error === "string" ? { message: error } : error); // Ollama's form is the text
    } catch { /* not the API's form */ }
    throw new ApiError(said || `${response.status} ${response.statusText}`, code);
  }
}

export const getJson = async (path) => (await request(path)).json();
export const postJson = async (path, body) => (await request(path, { method: "POST", body: JSON.stringify(body) })).json();

export const postForm = async (path, form) => (await request(path, { method: "POST", body: form })).json();

/** The parts of a stream that `end` ends. */
async function* parts(body, end) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      buffer += value.replaceAll("\r", "");
      let at;
      while ((at = buffer.indexOf(end)) >= 0) {
        const part = buffer.slice(0, at);
        buffer = buffer.slice(at + end.length);
        yield part;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The data of each event, until the stream ends. */
async function* events(body) {
  for await (const part of parts(body, "\n\n")) {
    const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
    if (data.length) yield data.join("\n");
  }
}

/** Fetch a model; yields how far it is, `{ total, completed }`. */
export async function* pull(model, signal) {
  const response = await request("api/pull", { method: "POST", body: JSON.stringify({ model }), signal });
  for await (const line of parts(response.body, "\n")) {
    if (!line) continue;
    const found = JSON.parse(line);
    if (found.error) throw new ApiError(found.error);
    yield found;
  }
}

/** Chunks of an answer, as the API gives them. */
export async function* complete(body, signal) {
  const payload = { ...body, stream: true, stream_options: { include_usage: true }, return_progress: true };
  const response = await request("v1/chat/completions", { method: "POST", body: JSON.stringify(payload), signal });
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(chunk.error.message, chunk.error.code);
    yield chunk;
  }
  throw new ApiError("The answer broke off: the connection was closed.");
}
