// Words that stand out too little from what is behind them, as [contrast, words, colour, ground], by WCAG 2: text needs
// 4.5 to 1. Filters of the page count, and so does `outer`, by which a page shows a picture that is looked at alone.
(outer => {
  const canvas = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
  const brush = canvas.getContext("2d", { willReadFrequently: true });

  const painted = (colours, { alpha = 1, filter = "none" } = {}) => {
    brush.filter = filter;
    colours.forEach((colour, index) => {
      brush.globalAlpha = index === colours.length - 1 ? alpha : 1;
      brush.fillStyle = colour;
      brush.fillRect(0, 0, 1, 1);
    });
    const [red, green, blue] = brush.getImageData(0, 0, 1, 1).data;
    return `rgb(${red}, ${green}, ${blue})`;
  };

  const luminance = colour => colour.match(/\d+/g)
    .map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);

  const contrast = (left, right) => {
    const [dark, light] = [luminance(left), luminance(right)].sort((one, other) => one - other);
    return (light + 0.05) / (dark + 0.05);
  };

  // Shapes of a picture that were drawn before the words and lie behind their middle.
  const shapesBehind = (words, box, picture) => [...picture.querySelectorAll("rect, circle, polygon")].filter(shape => {
    const place = shape.getBoundingClientRect();
    const x = box.left + box.width / 2;
    const y = box.top + box.height / 2;
    return place.left <= x && x <= place.right && place.top <= y && y <= place.bottom
      && shape.compareDocumentPosition(words) & Node.DOCUMENT_POSITION_FOLLOWING
      && getComputedStyle(shape).fill !== "none";
  }).map(shape => getComputedStyle(shape).fill);

  const faint = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = walker.currentNode.data.trim();
    const holder = walker.currentNode.parentElement;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    const isSeen = box.width > 1 && box.height > 1
      && holder.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!words || !isSeen) continue;
    const picture = holder.closest("svg");
    const grounds = [];
    const filters = outer ? [outer] : [];
    let alpha = 1;
    for (let at = holder; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (at === picture) grounds.unshift(...shapesBehind(holder, box, picture));
      if (!picture?.contains(at) || at === picture) grounds.unshift(style.backgroundColor);
      if (style.filter !== "none") filters.push(style.filter);
      alpha *= style.opacity;
    }
    const ink = picture ? getComputedStyle(holder).fill : getComputedStyle(holder).color;
    const filter = filters.join(" ") || "none";
    const under = painted(["white", ...grounds]);
    const ground = painted([under], { filter });
    const front = painted([painted([under, ink], { alpha })], { filter });
    if (contrast(front, ground) < 4.5) faint.push([contrast(front, ground).toFixed(2), words.slice(0, 40), front, ground]);
  }
  return faint;
})
