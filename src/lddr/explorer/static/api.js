// Requests to the server; failures become an Error whose message the page shows.

async function asked(path, settings) {
  let response;
  try {
    response = await fetch(path, settings);
  } catch {
    throw new Error("the explorer does not answer; is it still running?");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.message ?? `the explorer answered with error ${response.status}`);
}

const place = (token, what) => `/api/runs/${encodeURIComponent(token)}${what ? `/${what}` : ""}`;

const json = (body) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

export const listRuns = async () => (await asked("/api/runs")).json();

export const about = async (token, what) => (await asked(place(token, what))).json();

export const picture = async (token, what) => (await asked(place(token, what))).blob();

export const decode = async (token, values) => (await asked(place(token, "decode"), json({ values }))).blob();

export const traverse = async (token, values, latent, count) =>
  (await asked(place(token, "traverse"), json({ values, latent, count }))).blob();

// A choice is {index}, {factors} or a Blob with a picture.
export async function encode(token, choice) {
  const settings =
    choice instanceof Blob
      ? { method: "POST", headers: { "content-type": choice.type || "application/octet-stream" }, body: choice }
      : json(choice);
  return (await asked(place(token, "encode"), settings)).json();
}

// One request at a time: while one is under way, only the last of the new ones is kept.
export function latestOnly(work) {
  let underWay = false;
  let next = null;
  return async function ask(...wanted) {
    next = wanted;
    if (underWay) return;
    underWay = true;
    try {
      while (next) {
        const now = next;
        next = null;
        await work(...now);
      }
    } finally {
      underWay = false;
    }
  };
}
