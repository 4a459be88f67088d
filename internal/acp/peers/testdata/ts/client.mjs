// A client made with the official SDK drives an agent through prompts and
// prints one line of JSON for each: what it saw, and how the turn ended.
//
//   node client.mjs v1|v2 PROMPT,PROMPT,... COMMAND ARG...
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as v1 from "@agentclientprotocol/sdk";
import * as v2 from "@agentclientprotocol/sdk/experimental/v2";

const [version, prompts, command, ...args] = process.argv.slice(2);
const acp = version === "v2" ? v2 : v1;
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

let seen = [];
let onState = () => {};
const info = { name: "peer", version: "1" };

function app() {
  const c = acp.client({ name: "peer" }).onNotification("session/update", ({ params }) => {
    const u = params.update;
    seen.push(u.sessionUpdate === "state_update" ? `state_update ${u.state}` : u.sessionUpdate);
    if (u.sessionUpdate === "state_update") onState(u);
  });
  if (version === "v2") return c;
  const answers = {
    "session/request_permission": { outcome: { outcome: "selected", optionId: "allow_once" } },
    "fs/write_text_file": {},
    "fs/read_text_file": { content: "written by testy\n" },
    "terminal/create": { terminalId: "t-1" },
    "terminal/output": { output: "x", truncated: false },
    "terminal/wait_for_exit": { exitCode: 0 },
    "terminal/kill": {},
    "terminal/release": {},
  };
  for (const [method, answer] of Object.entries(answers)) {
    c.onRequest(method, () => {
      seen.push(method);
      return answer;
    });
  }
  c.onRequest("elicitation/create", ({ params }) => {
    seen.push("elicitation/create");
    const word = params.message.split(" ")[0];
    if (word !== "Accept") return { action: word.toLowerCase() };
    return params.mode === "url" ? { action: "accept" } : { action: "accept", content: { name: "a", confidence: 0.5, age: 3, confirmed: true } };
  });
  return c.onNotification("elicitation/complete", () => {
    seen.push("elicitation/complete");
  });
}

const connection = app().connect(stream);
const agent = connection.agent;

async function turnV1(sessionId, text) {
  const pending = agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  if (text === "wait_for_cancel") await agent.notify("session/cancel", { sessionId });
  return (await pending).stopReason;
}

async function turnV2(sessionId, text) {
  const idle = new Promise((done) => {
    onState = (u) => {
      if (u.state === "running" && text === "wait_for_cancel") agent.notify("session/cancel", { sessionId });
      if (u.state === "idle" && u.stopReason) done(u.stopReason);
    };
  });
  const { messageId } = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  if (!messageId) throw new Error("no messageId");
  return idle;
}

try {
  if (version === "v2") {
    await agent.request("initialize", { protocolVersion: 2, info, capabilities: {} });
  } else {
    await agent.request("initialize", {
      protocolVersion: 1,
      clientInfo: info,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation: { form: {}, url: {} } },
    });
  }
  const { sessionId } = await agent.request("session/new", { cwd: "/", mcpServers: [] });
  for (const prompt of prompts.split(",")) {
    seen = [];
    const stop = version === "v2" ? await turnV2(sessionId, prompt) : await turnV1(sessionId, prompt);
    await new Promise((r) => setImmediate(r)); // its handlers run after the response
    console.log(JSON.stringify({ prompt, stop, seen }));
  }
  const { sessions } = await agent.request("session/list", {});
  console.log(JSON.stringify({ prompt: "list", stop: String(sessions.length), seen: [] }));
  await agent.request("session/close", { sessionId });
} catch (e) {
  console.log(JSON.stringify({ prompt: "error", stop: String(e?.message ?? e), seen: [] }));
}
child.stdin.end();
