#!/usr/bin/env python3
"""A scripted vendor behind the proxy: OpenAI chat completions and Anthropic messages, streamed.

The answer follows from the history in the request: a small job in a repository with `stats.py` and `test_stats.py`.
Prints "PORT <n>" when it listens on 127.0.0.1, and ends when its stdin is closed.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BROKEN = "    return ordered[len(ordered) // 2]"
MENDED = """    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2"""
NOTE = {
    "changed": "median in stats.py",
    "now_true": "the median of an even number of values is the mean of the two in the middle",
    "next": "nothing",
    "succeeded": True,
}
# the calls of each reply, by the number of replies that the history holds
STEPS = [
    [("read_file", {"path": "test_stats.py"}), ("read_file", {"path": "stats.py"})],
    [("edit_file", {"path": "stats.py", "old": BROKEN, "new": MENDED})],
    [("run_command", {"command": "python3 test_stats.py"})],
    [("hand_back", NOTE)],
]
INPUT, OUTPUT = 100, 20


def calls_for(body):
    replies = sum(message["role"] == "assistant" for message in body["messages"])
    return replies, STEPS[min(replies, len(STEPS) - 1)]


def pieces(text):
    return [text[at : at + 9] for at in range(0, len(text), 9)]


def chat(body):
    """The data lines of a chat completion's stream."""
    replies, calls = calls_for(body)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def chunk(delta, finish=None):
        return json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": "Next step. "})
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{replies}_{index}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for piece in pieces(json.dumps(arguments)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    yield json.dumps({**head, "choices": [], "usage": usage})
    yield "[DONE]"


def messages(body):
    """The events of a message's stream."""
    replies, calls = calls_for(body)
    blocks = [({"type": "thinking", "thinking": "", "signature": ""}, [
        {"type": "thinking_delta", "thinking": "The next step is clear."},
        {"type": "signature_delta", "signature": f"EqQBCkYI{replies}=="},
    ])]
    for index, (name, arguments) in enumerate(calls):
        start = {"type": "tool_use", "id": f"toolu_{replies}_{index}", "name": name, "input": {}}
        blocks.append((start, [{"type": "input_json_delta", "partial_json": p} for p in pieces(json.dumps(arguments))]))
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    usage = {"input_tokens": INPUT, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (start, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"input_tokens": INPUT, "output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def unsigned(body):
    """Thinking in the history that was not made here: a vendor refuses it."""
    for message in body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        for block in content:
            if block["type"] == "thinking" and not block.get("signature", "").startswith("EqQBCkYI"):
                return True
    return False


class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.split("?")[0]
        if path.endswith("/chat/completions") and body.get("stream"):
            self.stream(f"data: {line}\n\n" for line in chat(body))
        elif path.endswith("/messages") and body.get("stream") and not unsigned(body):
            self.stream(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages(body))
        else:
            error = {"type": "invalid_request_error", "message": f"not in the script: {path}"}
            self.whole(400, {"type": "error", "error": error})

    def whole(self, status, answer):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, parts):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for part in parts:
            data = part.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")


def end_with_stdin():
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    print(f"PORT {server.server_port}", flush=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    server.serve_forever()
