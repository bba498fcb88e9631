// Pictures on canvases, their own pixels kept sharp.
import { h } from "./dom.js";

export function canvas(label) {
  return h("canvas", { role: "img", "aria-label": label, width: 1, height: 1 });
}

export async function draw(target, source) {
  const bitmap = source instanceof Blob ? await createImageBitmap(source) : await fromUrl(source);
  target.width = bitmap.width;
  target.height = bitmap.height;
  target.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close?.();
}

async function fromUrl(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

// A strip of pictures, cut into canvases from left to right and top to bottom.
export async function cut(blob, columns, rows = 1) {
  const bitmap = await createImageBitmap(blob);
  const [width, height] = [bitmap.width / columns, bitmap.height / rows];
  const pieces = [];
  for (let number = 0; number < columns * rows; number += 1) {
    const piece = h("canvas", { width, height });
    const [x, y] = [(number % columns) * width, Math.floor(number / columns) * height];
    piece.getContext("2d").drawImage(bitmap, x, y, width, height, 0, 0, width, height);
    pieces.push(piece);
  }
  bitmap.close();
  return pieces;
}

export function asBlob(target) {
  return new Promise((resolve) => target.toBlob(resolve, "image/png"));
}

export async function blobOf(url) {
  const target = h("canvas");
  await draw(target, url);
  return asBlob(target);
}
