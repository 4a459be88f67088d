// An agent made with the official SDK, in both versions of the protocol: it
// echoes, asks for permission, reads a file, and waits for a cancel.
import { Readable, Writable } from "node:stream";
import * as v1 from "@agentclientprotocol/sdk";
import * as v2 from "@agentclientprotocol/sdk/experimental/v2";

const router = v2.agentProtocolRouter();
let n = 0;

function say(client, sessionId, text, extra = {}) {
  return client.notify("session/update", {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text }, ...extra },
  });
}

// A cancel may come before the prompt's handler waits for it.
const waiting = new Map();
const early = new Set();
const untilCancelled = (id) => (early.delete(id) ? Promise.resolve() : new Promise((done) => waiting.set(id, done)));
function cancel({ params: { sessionId } }) {
  const done = waiting.get(sessionId);
  if (!done) return early.add(sessionId);
  waiting.delete(sessionId);
  done();
}
const textOf = (prompt) => prompt.filter((b) => b.type === "text").map((b) => b.text).join(" ");

const agentV1 = v1
  .agent({ name: "ts" })
  .onRequest("initialize", () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: false, sessionCapabilities: { list: {}, close: {} } },
    agentInfo: { name: "ts-peer", version: "1" },
  }))
  .onRequest("session/new", () => ({ sessionId: `ts-${++n}` }))
  .onRequest("session/list", () => ({ sessions: [] }))
  .onRequest("session/close", () => ({}))
  .onNotification("session/cancel", cancel)
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId } = params;
    const text = textOf(params.prompt);
    if (text === "wait_for_cancel") {
      await untilCancelled(sessionId);
      return { stopReason: "cancelled" };
    }
    if (text === "ask") {
      const update = { toolCallId: "call-1", title: "Run it", kind: "execute", status: "pending" };
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "tool_call", ...update } });
      const { outcome } = await client.request("session/request_permission", {
        sessionId,
        toolCall: update,
        options: [
          { optionId: "yes", name: "Yes", kind: "allow_once" },
          { optionId: "no", name: "No", kind: "reject_once" },
        ],
      });
      await say(client, sessionId, `permission: ${outcome.optionId ?? outcome.outcome}`);
    } else if (text.startsWith("read ")) {
      const { content } = await client.request("fs/read_text_file", { sessionId, path: text.slice(5) });
      await say(client, sessionId, content);
    } else {
      await say(client, sessionId, text);
    }
    return { stopReason: "end_turn" };
  });

const agentV2 = v2
  .agent({ name: "ts" })
  .onRequest("initialize", () => ({
    protocolVersion: 2,
    info: { name: "ts-peer", version: "1" },
    capabilities: { session: {} },
  }))
  .onRequest("session/new", () => ({ sessionId: `ts-${++n}` }))
  .onRequest("session/list", () => ({ sessions: [] }))
  .onRequest("session/close", () => ({}))
  .onRequest("session/resume", () => ({}))
  .onNotification("session/cancel", cancel)
  .onRequest("session/prompt", ({ params, client }) => {
    const { sessionId, prompt } = params;
    const messageId = `ts-message-${++n}`;
    const state = (update) => client.notify("session/update", { sessionId, update: { sessionUpdate: "state_update", ...update } });
    setImmediate(async () => {
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "user_message", messageId, content: prompt } });
      await state({ state: "running" });
      if (textOf(prompt) === "wait_for_cancel") {
        await untilCancelled(sessionId);
        return state({ state: "idle", stopReason: "cancelled" });
      }
      await say(client, sessionId, textOf(prompt), { messageId: `ts-message-${++n}` });
      await state({ state: "idle", stopReason: "end_turn" });
    });
    return { messageId };
  });

const stream = v1.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
router.withV1(agentV1).withV2(agentV2).connect(stream);
