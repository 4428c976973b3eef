// The microphone: what is said becomes text in the message, by a speech model of this server.

import { postForm } from "./api.js";

const button = document.getElementById("speak");
const RATE = 16000; // what speech models hear
const MOST_SECONDS = 300;

let recorder = null;

/** A recording as a WAV file, in one channel: the browser decodes what it has recorded, so the server needs no decoder. */
async function wav(blob) {
  const context = new OfflineAudioContext(1, 1, RATE);
  const sound = await context.decodeAudioData(await blob.arrayBuffer()); // at the rate of the context
  const data = new DataView(new ArrayBuffer(44 + 2 * sound.length));
  const channels = Array.from({ length: sound.numberOfChannels }, (_, at) => sound.getChannelData(at));
  const word = (at, text) => [...text].forEach((char, by) => data.setUint8(at + by, char.charCodeAt(0)));
  word(0, "RIFF"); data.setUint32(4, 36 + 2 * sound.length, true); word(8, "WAVEfmt "); data.setUint32(16, 16, true);
  data.setUint16(20, 1, true); data.setUint16(22, 1, true); data.setUint32(24, RATE, true); data.setUint32(28, 2 * RATE, true);
  data.setUint16(32, 2, true); data.setUint16(34, 16, true); word(36, "data"); data.setUint32(40, 2 * sound.length, true);
  for (let at = 0; at < sound.length; at += 1) {
    const value = channels.reduce((sum, channel) => sum + channel[at], 0) / channels.length;
    data.setInt16(44 + 2 * at, 32767 * Math.max(-1, Math.min(1, value)), true);
  }
  return new Blob([data], { type: "audio/wav" });
}

async function record() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const parts = [];
  const made = new MediaRecorder(stream);
  made.addEventListener("dataavailable", ({ data }) => parts.push(data));
  const ended = new Promise((done) => made.addEventListener("stop", done, { once: true }));
  made.start();
  const limit = setTimeout(() => made.stop(), 1000 * MOST_SECONDS);
  recorder = made;
  show(true);
  await ended;
  clearTimeout(limit);
  for (const track of stream.getTracks()) track.stop();
  recorder = null;
  show(false);
  return new Blob(parts, { type: made.mimeType });
}

function show(recording) {
  button.setAttribute("aria-pressed", String(recording));
  button.title = recording ? "Stop, and write what was said" : "Say the message";
}

/** Offer the microphone where the browser has one; `model` names the speech model, "" where there is none. */
export function follow(model, heard, tell) {
  const offered = () => Boolean(model() && navigator.mediaDevices?.getUserMedia && window.MediaRecorder); // from this machine or over HTTPS
  button.addEventListener("click", async () => {
    if (recorder) {
      recorder.stop();
      return;
    }
    try {
      const sound = await record();
      button.disabled = true;
      tell("Writing what was said …");
      const form = new FormData();
      form.append("model", model());
      form.append("file", await wav(sound), "message.wav");
      const { text } = await postForm("v1/audio/transcriptions", form);
      tell(text.trim() ? "" : "Nothing was heard.");
      heard(text.trim());
    } catch (error) {
      tell(error.name === "NotAllowedError" ? "The browser does not allow the microphone." : error.message);
    } finally {
      button.disabled = false;
    }
  });
  return () => { button.hidden = !offered(); };
}
