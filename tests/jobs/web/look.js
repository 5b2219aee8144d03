// What a test looks at on a view of the page: evaluated there by browsing.py; each list but
// the ground is of faults.
() => {
  const shown = (one) => one.getClientRects().length > 0;

  // Words against their ground, as WCAG computes it.
  const parts = (text) => {
    const found = text.match(/[\d.]+/g).map(Number);
    return [...found.slice(0, 3), found[3] ?? 1];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = (top, under) => under.map((c, i) => top[i] * top[3] + c * (1 - top[3]));
  const ground = (one) => {
    const behind = [];
    for (let each = one; each; each = each.parentElement) {
      behind.unshift(parts(getComputedStyle(each).backgroundColor));
    }
    return behind.reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const contrast = (one) => {
    const under = ground(one);
    const { color, fill } = getComputedStyle(one);
    const ink = over(parts(one.ownerSVGElement ? fill : color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const [one, text] = [walk.currentNode.parentElement, walk.currentNode.data.trim()];
    const apart = one.closest(".scene, svg.plot, [disabled]");
    if (!text || apart || !shown(one)) continue;
    if (contrast(one) < 4.5) faint.push(`${text.slice(0, 30)}: ${contrast(one).toFixed(2)}`);
  }

  // What one touches; the input of a card is its label.
  const touched = "button, select, input:not([type=hidden]), summary, nav a, a.button, a.fix";
  const small = [...document.querySelectorAll(touched)]
    .map((one) => (["checkbox", "radio"].includes(one.type) ? one.closest("label") : one))
    .map((one) => [one.textContent || one.name, one.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.height < 28 || box.width < 24))
    .map(([name, box]) => `${name}: ${box.width} x ${box.height}`);

  // Names for those who listen. What else a name, a head or a landmark must be says axe-core.
  const named = (one) => one.getAttribute("aria-label") || one.textContent.trim()
    || one.labels?.[0]?.textContent.trim();
  const all = [...document.querySelectorAll(
    "a, button, input, select, summary, canvas, [role=img], section, nav, form",
  )];
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const heads = document.querySelectorAll("h1").length;
  const wider = document.documentElement.scrollWidth - innerWidth;
  return {
    ground: getComputedStyle(document.body).backgroundColor,
    "wider than the window": wider > 0 ? [`${wider} px`] : [],
    "too small to touch": small,
    "too faint": faint,
    "without a name": all.filter((one) => !one.hidden && one.type !== "hidden" && one.ariaHidden !== "true" && !named(one)).map((one) => one.outerHTML.slice(0, 80)),
    "an id twice": ids.filter((id, i) => ids.indexOf(id) !== i),
    "heads of the first level": heads === 1 ? [] : [heads],
  };
}
