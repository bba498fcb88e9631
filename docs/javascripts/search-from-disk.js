// Browsers start no worker for a page from disk: there, the search runs in a hidden frame that answers as a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = (this.inside = frame.contentWindow);
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((loaded) => {
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = loaded;
        inside.document.head.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
