"""A small Hugging Face Hub on this machine: as much of its HTTP interface as pushing and fetching a model takes."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN, USER = "hf_secret", "me"
LARGE = (".safetensors", ".png", ".bin")  # go by LFS


class Hub:
    """Repositories by name: whether they are private, their branches, and the files of every commit."""

    def __init__(self):
        self.repositories, self.blobs, self.log = {}, {}, []

    def add(self, name, files=None, private=False):
        self.repositories[name] = {"private": private, "branches": {}, "commits": {}}
        self.commit(name, "main", files or {})

    def commit(self, name, branch, files):
        there = self.repositories[name]
        before = there["commits"].get(there["branches"].get(branch), {})
        sha = hashlib.sha1(repr((name, branch, len(there["commits"]))).encode()).hexdigest()
        there["commits"][sha] = before | files
        there["branches"][branch] = sha
        return sha

    def files(self, name, branch="main"):
        there = self.repositories[name]
        return there["commits"][there["branches"][branch]]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        self.body = self._body()
        path = self.path.partition("?")[0]
        self.hub.log.append(f"{self.command} {path}")
        for method, pattern, answer in ROUTES:
            if method in (self.command, "GET" if self.command == "HEAD" else None) and (
                found := re.fullmatch(pattern, path)
            ):
                return answer(self, *found.groups())
        return self.reply(404, {"error": "no such page"})

    do_GET = do_HEAD = do_POST = do_PUT = handle_any  # noqa: N815 (as http.server calls them)

    @property
    def hub(self):
        return self.server.hub

    @property
    def known(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def log_message(self, *words):
        pass

    def _body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status, content, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def repository(self, name):
        """What is there for every request; answers itself if there is nothing."""
        there = self.hub.repositories.get(name)
        if there is not None and (self.known or not there["private"]):
            return there
        if not self.known:
            self.reply(401, {"error": "Invalid username or password."}, X_Error_Message="Invalid username or password.")
        else:
            self.reply(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        return None


def create(ask):
    if not ask.known:
        return ask.reply(401, {"error": "Invalid username or password."})
    wanted = json.loads(ask.body)
    owner = wanted.get("organization") or USER
    if owner != USER:
        return ask.reply(403, {"error": f"You don't have the rights to create a model under the namespace {owner}"})
    name = f"{owner}/{wanted['name']}"
    url = {"url": f"{ask.server.url}/{name}", "name": name}
    if name in ask.hub.repositories:
        return ask.reply(409, {"error": "You already created this model repo"} | url)
    private = wanted.get("private") is True or wanted.get("visibility") == "private"
    ask.hub.add(name, {".gitattributes": b""}, private)
    return ask.reply(200, url)


def validate(ask):
    import yaml

    front = yaml.safe_load(json.loads(ask.body)["content"].split("---\n")[1])
    wrong = [] if front["library_name"] == "lddr" else [{"message": "of another library"}]
    ask.reply(400 if wrong else 200, {"errors": wrong, "warnings": []})


def branch(ask, name, wanted):
    branches = ask.hub.repositories[name]["branches"]
    if wanted in branches:
        return ask.reply(409, {"error": "Reference already exists"})
    branches[wanted] = branches["main"]
    return ask.reply(201, {})


def preupload(ask, name, revision):
    def told(file):
        mode = "lfs" if file["path"].endswith(LARGE) else "regular"
        return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}

    if ask.repository(name):
        ask.reply(200, {"files": [told(file) for file in json.loads(ask.body)["files"]]})


def batch(ask, name):
    def told(wanted):
        actions = {"upload": {"href": f"{ask.server.url}/lfs/{wanted['oid']}"}}
        actions["verify"] = {"href": f"{ask.server.url}/verify"}
        return {"oid": wanted["oid"], "size": wanted["size"], "actions": actions}

    ask.reply(200, {"transfer": "basic", "objects": [told(wanted) for wanted in json.loads(ask.body)["objects"]]})


def upload(ask, oid):
    if hashlib.sha256(ask.body).hexdigest() != oid:
        return ask.reply(400, {"error": "this is something else"})
    ask.hub.blobs[oid] = ask.body
    return ask.reply(200, {})


def verify(ask):
    wanted = json.loads(ask.body)
    ask.reply(200 if len(ask.hub.blobs[wanted["oid"]]) == wanted["size"] else 400, {})


def commit(ask, name, revision):
    if not ask.known:
        return ask.reply(401, {"error": "Invalid username or password."})
    files = {}
    for line in map(json.loads, ask.body.splitlines()):
        value = line["value"]
        if line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = ask.hub.blobs[value["oid"]]
    sha = ask.hub.commit(name, revision, files)
    return ask.reply(200, {"success": True, "commitOid": sha, "commitUrl": f"{ask.server.url}/{name}/commit/{sha}"})


def info(ask, name, revision="main"):
    there = ask.repository(name)
    if there is None:
        return None
    sha = there["branches"].get(revision, revision)
    if sha not in there["commits"]:
        return ask.reply(404, {"error": f"Invalid rev id: {revision}"}, X_Error_Code="RevisionNotFound")
    siblings = [{"rfilename": path} for path in there["commits"][sha]]
    about = {"_id": "1", "id": name, "modelId": name, "sha": sha, "private": there["private"], "siblings": siblings}
    return ask.reply(200, about | {"tags": [], "downloads": 0, "likes": 0})


def tree(ask, name, sha):
    if there := ask.repository(name):
        ask.reply(200, [_entry(path, content) for path, content in there["commits"][sha].items()])


def _entry(path, content):
    entry = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
    large = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry | ({"lfs": large} if path.endswith(LARGE) else {})


def resolve(ask, name, sha, path):
    if there := ask.repository(name):
        files = there["commits"][sha]
        if path not in files:
            return ask.reply(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        tag = hashlib.sha256(files[path]).hexdigest()
        return ask.reply(200, files[path], ETag=f'"{tag}"', X_Repo_Commit=sha, Content_Type="application/octet-stream")
    return None


NAME = r"([\w.-]+/[\w.-]+)"
ROUTES = [
    ("POST", r"/api/repos/create", create),
    ("POST", r"/api/validate-yaml", validate),
    ("POST", rf"/api/models/{NAME}/branch/(.+)", branch),
    ("POST", rf"/api/models/{NAME}/preupload/(.+)", preupload),
    ("POST", rf"/{NAME}\.git/info/lfs/objects/batch", batch),
    ("PUT", r"/lfs/(\w+)", upload),
    ("POST", r"/verify", verify),
    ("POST", rf"/api/models/{NAME}/commit/(.+)", commit),
    ("GET", rf"/api/models/{NAME}/tree/(\w+)", tree),
    ("GET", rf"/api/models/{NAME}/revision/(.+)", info),
    ("GET", rf"/api/models/{NAME}", info),
    ("GET", rf"/{NAME}/resolve/(\w+)/(.+)", resolve),
]


@contextmanager
def running_hub():
    """A hub that answers; its address is `url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.hub = hub = Hub()
    server.url = hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
