#!/usr/bin/env python3
"""A scripted vendor behind the proxy: OpenAI chat completions and Anthropic messages, streamed.

The answer follows from the history in the request: a small job in a repository with `stats.py` and `test_stats.py`.

A request whose text holds `[vendor: NAME FAULT FAULT …]` meets these faults first: the nth call under that NAME the
nth of them (`ok` is none), and no more when they are used up. GET /calls/NAME lists the models called under it.

Prints "PORT <n>" when it listens on 127.0.0.1, and ends when its stdin is closed.
"""

import json
import os
import re
import socket
import struct
import threading
import time
from collections import defaultdict
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
# the calls of each reply, by the number of steps that the history holds
STEPS = [
    [("read_file", {"path": "test_stats.py"}), ("read_file", {"path": "stats.py"})],
    [("edit_file", {"path": "stats.py", "old": BROKEN, "new": MENDED})],
    [("run_command", {"command": "python3 test_stats.py"})],
    [("hand_back", NOTE)],
]
# what a spoilt reply asks for: it must never be done, and its tool is used by no step
SPOILT = [("write_file", {"path": "spoilt.txt", "content": "spoilt"})]
INPUT, OUTPUT = 100, 20

# status, OpenAI's type and code, Anthropic's type, headers, and the text of each
ERRORS = {
    "limited": (429, ("rate_limit_exceeded", "rate_limit_exceeded"), "rate_limit_error", {"retry-after": "7"},
                "Rate limit reached for requests.", "This request would exceed your organization's rate limit."),
    "limited-untold": (429, ("rate_limit_exceeded", "rate_limit_exceeded"), "rate_limit_error", {},
                       "Rate limit reached for requests.", "This request would exceed your organization's rate limit."),
    "limited-long": (429, ("rate_limit_exceeded", "rate_limit_exceeded"), "rate_limit_error", {"retry-after": "86400"},
                     "Daily limit reached.", "Daily limit reached."),
    "broken": (500, ("server_error", None), "api_error", {}, "The server had an error.", "Internal server error"),
    "busy": (503, ("server_error", None), "overloaded_error", {}, "The engine is overloaded.", "Overloaded"),
    "key": (401, ("invalid_request_error", "invalid_api_key"), "authentication_error", {},
            "Incorrect API key provided.", "invalid x-api-key"),
    "overflow": (400, ("invalid_request_error", "context_length_exceeded"), "invalid_request_error", {},
                 "This model's maximum context length is 8192 tokens. However, your messages resulted in 9123 tokens.",
                 "prompt is too long: 213462 tokens > 200000 maximum"),
    "unpaid": (429, ("insufficient_quota", "insufficient_quota"), "invalid_request_error", {},
               "You exceeded your current quota, please check your plan and billing details.",
               "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."),
    "wrong": (400, ("invalid_request_error", None), "invalid_request_error", {},
              "Invalid value: 'foo'.", "messages.1: invalid"),
}
# the one error whose status differs by vendor, and Anthropic's own for an overloaded server
ANTHROPIC_STATUS = {"unpaid": 400, "busy": 529}

CALLS = defaultdict(list)
LOCK = threading.Lock()


def fault(raw, model):
    """The fault that this call meets, if any."""
    found = re.search(r"\[vendor: (\S+)((?: [a-z-]+)*)\]", raw)
    if not found:
        return None
    with LOCK:
        calls = CALLS[found[1]]
        calls.append(model)
        faults = found[2].split()
        name = faults[len(calls) - 1] if len(calls) <= len(faults) else "ok"
    return None if name == "ok" else name


def calls_for(body, spoilt):
    """The number of replies in the history, and the calls of the next one."""
    replies = [message for message in body["messages"] if message["role"] == "assistant"]
    steps = sum(any(name != "write_file" for name in called(reply)) for reply in replies)
    return len(replies), SPOILT if spoilt else STEPS[min(steps, len(STEPS) - 1)]


def called(reply):
    """The names of a reply's calls."""
    blocks = reply["content"] if isinstance(reply["content"], list) else []
    names = [block["name"] for block in blocks if block["type"] == "tool_use"]
    return names + [call["function"]["name"] for call in reply.get("tool_calls") or []]


def pieces(text):
    return [text[at : at + 9] for at in range(0, len(text), 9)]


def chat(body, truncated=False, spoilt=False):
    """The data lines of a chat completion's stream."""
    replies, calls = calls_for(body, spoilt)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def chunk(delta, finish=None):
        return json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": "Next "})
    yield chunk({"content": "step. "})
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{replies}_{index}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for piece in pieces(json.dumps(arguments))[: 2 if truncated else None]:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "length" if truncated else "tool_calls")
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    yield json.dumps({**head, "choices": [], "usage": usage})
    yield "[DONE]"


def messages(body, truncated=False, spoilt=False):
    """The events of a message's stream."""
    replies, calls = calls_for(body, spoilt)
    blocks = [
        ({"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": "The next step is clear."},
            {"type": "signature_delta", "signature": f"EqQBCkYI{replies}=="},
        ]),
        ({"type": "text", "text": ""}, [
            {"type": "text_delta", "text": "Next "},
            {"type": "text_delta", "text": "step."},
        ]),
    ]
    for index, (name, arguments) in enumerate(calls):
        start = {"type": "tool_use", "id": f"toolu_{replies}_{index}", "name": name, "input": {}}
        parts = pieces(json.dumps(arguments))[: 2 if truncated else None]
        blocks.append((start, [{"type": "input_json_delta", "partial_json": part} for part in parts]))
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    usage = {"input_tokens": INPUT, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (start, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": "max_tokens" if truncated else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"input_tokens": INPUT, "output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def cut(parts, place):
    """The parts up to a place: in the middle of the text, of a call's arguments, or before the word of the end."""
    of_calls = 0
    for part in parts:
        if place == "end" and ('"finish_reason": "' in part or "message_delta" in part):
            return
        yield part
        of_calls += any(mark in part for mark in ('"tool_calls": [', '"type": "tool_use"', "input_json_delta"))
        if (place == "text" and "Next " in part) or (place == "call" and of_calls == 2):
            return


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

    def do_GET(self):
        if self.path.startswith("/calls/"):
            with LOCK:
                self.whole(200, list(CALLS[self.path.removeprefix("/calls/")]))
        else:
            self.whole(404, {"error": {"type": "not_found_error", "message": f"not in the script: {self.path}"}})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"])).decode()
        body = json.loads(raw)
        path = self.path.split("?")[0]
        streamed = body.get("stream")
        if path.endswith("/chat/completions") and streamed:
            self.answer(fault(raw, body["model"]), chat, body, lambda line: f"data: {line}\n\n", False)
        elif path.endswith("/messages") and streamed and not unsigned(body):
            form = lambda event: f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            self.answer(fault(raw, body["model"]), messages, body, form, True)
        else:
            error = {"type": "invalid_request_error", "message": f"not in the script: {path}"}
            self.whole(400, {"type": "error", "error": error})

    def answer(self, name, reply, body, form, anthropic):
        """The reply, or the fault of that name in its place."""
        if name in ERRORS:
            status, (kind, code), vendor_kind, headers, openai_text, anthropic_text = ERRORS[name]
            if anthropic:
                error = {"type": vendor_kind, "message": anthropic_text}
                self.whole(ANTHROPIC_STATUS.get(name, status), {"type": "error", "error": error}, headers)
            else:
                error = {"message": openai_text, "type": kind, "param": None, "code": code}
                self.whole(status, {"error": error}, headers)
        elif name == "hang":
            time.sleep(30)
            self.reset()
        elif name == "reset":
            self.reset()
        elif name == "truncated":
            self.stream(form(part) for part in reply(body, truncated=True, spoilt=True))
        elif name and name.startswith(("eof-", "rst-")):
            how, place = name.split("-")
            self.stream(cut((form(part) for part in reply(body, spoilt=True)), place), how)
        elif name:
            self.whole(418, {"error": {"type": "invalid_request_error", "message": f"no such fault: {name}"}})
        else:
            self.stream(form(part) for part in reply(body))

    def whole(self, status, answer, headers=None):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, parts, how="eof"):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for part in parts:
            data = part.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if how == "rst":
            time.sleep(0.1)  # what was sent before must be on its way first
            self.reset()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def reset(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # the proxy hung up, or we did


def end_with_stdin():
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Vendor)
    print(f"PORT {server.server_port}", flush=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    server.serve_forever()
