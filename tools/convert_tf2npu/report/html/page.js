// Search, filters, sorting, copying, and the keyboard. The page is whole without it, but for the places of APIs.
'use strict';
(function () {
  const byId = id => document.getElementById(id);
  const all = (selector, inside) => Array.from((inside || document).querySelectorAll(selector));
  const search = byId('search'), rule = byId('rule'), support = byId('support'), toggle = byId('toggle');
  const chips = all('.chip'), items = all('.item'), rows = all('.apis tbody tr');
  const totals = all('main section .number').map(shown => ({
    shown, total: shown.textContent, inside: '#' + shown.closest('section').id + ' '
  }));
  const words = JSON.parse(document.body.dataset.words || '{}');
  const say = text => words[text] || text;
  const plural = (number, one, many) => number + ' ' + say(number === 1 ? one : many);

  // --- what is searched: a text for each line of an item, and for each row of the table
  const groups = items.map(item => ({
    item, isFile: item.classList.contains('file'),
    lines: all('.said > li', item).map(line => {
      const block = line.closest('.block');
      const title = item.querySelector('summary').textContent;
      return {line, block, text: [title, line.dataset.path, line.dataset.rule, line.textContent,
        block ? block.querySelector('.message').textContent : ''].join(' ').toLowerCase()};
    })
  }));
  const places = byId('places') ? JSON.parse(byId('places').textContent) : {files: [], apis: []};
  const codes = new Map(rows.map(row => [row, all('a.code', row).map(link => link.textContent)]));

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = new Set(chips.filter(chip => chip.getAttribute('aria-pressed') === 'true').map(c => c.dataset.kind));
    const counted = {files: 0, places: 0, apis: 0};
    for (const group of groups) {
      let visible = 0;
      const blocks = new Map();
      for (const {line, block, text} of group.lines) {
        const fits = kinds.has(line.dataset.kind) && (!rule.value || line.dataset.rule === rule.value) &&
          words.every(word => text.includes(word));
        line.hidden = !fits;
        visible += fits ? 1 : 0;
        if (block) { blocks.set(block, blocks.get(block) || fits); }
      }
      for (const [block, fits] of blocks) { block.hidden = !fits; }
      group.item.hidden = !visible;
      if (group.isFile && visible) { counted.files += 1; counted.places += visible; }
    }
    for (const row of rows) {
      const text = (row.dataset.name + ' ' + row.textContent).toLowerCase();
      const fits = (!support.value || row.dataset.support === support.value) &&
        (!rule.value || codes.get(row).includes(rule.value)) &&
        words.every(word => text.includes(word) || inPlaces(row, word));
      row.hidden = !fits;
      if (spots.has(row)) { spots.get(row).hidden = !fits || !isExpanded(row); }
      counted.apis += fits ? 1 : 0;
    }
    byId('shown').textContent = isFiltered() ? plural(counted.places, 'place', 'places') + say(' in ') +
      plural(counted.files, 'file', 'files') + ', ' + plural(counted.apis, 'API', 'APIs') : '';
    for (const {shown, total, inside} of totals) {
      const each = inside + (inside === '#files ' ? '.file' : inside === '#apis ' ? '.apis tr[id]' : '.said > li');
      const visible = all(each + ':not([hidden])').length;
      shown.textContent = isFiltered() ? visible + say(' of ') + total : total;
    }
    label();
  }

  function inPlaces(row, word) {
    return places.apis[row.dataset.api].some(([number]) => places.files[number][0].toLowerCase().includes(word));
  }

  function isFiltered() {
    return Boolean(search.value.trim() || rule.value || support.value ||
      chips.some(chip => chip.getAttribute('aria-pressed') === 'false'));
  }

  // --- the address holds the filters, or else the name of what it links to
  function remember() {
    const state = new URLSearchParams();
    if (search.value.trim()) { state.set('q', search.value); }
    if (rule.value) { state.set('rule', rule.value); }
    if (support.value) { state.set('support', support.value); }
    const off = chips.filter(chip => chip.getAttribute('aria-pressed') === 'false').map(chip => chip.dataset.kind);
    if (off.length) { state.set('without', off.join(',')); }
    const hash = state.toString() ? '#?' + state : '';
    if (hash || location.hash.startsWith('#?')) {
      history.replaceState(null, '', location.pathname + location.search + hash);
    }
  }

  function recall() {
    const state = new URLSearchParams(location.hash.startsWith('#?') ? location.hash.slice(2) : '');
    search.value = state.get('q') || '';
    rule.value = state.get('rule') || '';
    support.value = state.get('support') || '';
    const off = (state.get('without') || '').split(',');
    for (const chip of chips) { chip.setAttribute('aria-pressed', String(!off.includes(chip.dataset.kind))); }
    for (const select of [rule, support]) { if (select.selectedIndex < 0) { select.value = ''; } }
  }

  function change() { filter(); remember(); }

  function openTarget() {
    const name = location.hash.slice(1);
    const target = name && !name.startsWith('?') && (byId(name) || byId(decodeURIComponent(name)));
    if (!target) { return; }
    if (target.hidden) { clear(); }
    const summary = target.querySelector(':scope > summary');
    if (summary) {
      target.open = true;
      summary.focus({preventScroll: true});
    } else if (target.matches('.apis tr')) {
      expand(target, true);
      target.querySelector('.expand').focus({preventScroll: true});
    }
    target.scrollIntoView();
  }

  // --- the table of APIs
  const spots = new Map();
  const isExpanded = row => row.querySelector('.expand').getAttribute('aria-expanded') === 'true';

  function expand(row, open) {
    row.querySelector('.expand').setAttribute('aria-expanded', String(open));
    if (open && !spots.has(row)) {
      spots.set(row, spotsOf(row));
      row.after(spots.get(row));
    }
    if (spots.has(row)) { spots.get(row).hidden = !open; }
  }

  function spotsOf(row) {
    const made = document.createElement('tr'), cell = document.createElement('td');
    made.className = 'spots';
    cell.colSpan = row.cells.length;
    made.append(cell);
    const word = row.querySelector('.support'), advice = document.createElement('p');
    const titles = codes.get(row).map(code => all('option', rule).find(option => option.value === code).textContent);
    advice.textContent = [word.textContent + ': ' + word.title, ...titles].join('. ') + '.';
    cell.append(advice);
    let list = null, last = -1;
    for (const [number, line, outcome] of places.apis[row.dataset.api]) {
      const [name, uri, lines] = places.files[number];
      if (number !== last) {
        last = number;
        list = document.createElement('ul');
        const head = document.createElement('h3');
        const title = document.createElement(uri ? 'a' : 'span');
        if (uri) { title.href = '#file-' + uri; }
        title.textContent = name;
        head.append(title);
        cell.append(head, list);
      }
      const [entry, where, code] = ['li', 'span', 'code'].map(tag => document.createElement(tag));
      entry.className = outcome;
      where.textContent = (lines[line][0] ? say('cell {0}').replace('{0}', lines[line][0]) + ':' : '') + lines[line][1];
      code.textContent = lines[line][2];
      entry.append(where, code);
      list.append(entry);
    }
    return made;
  }

  function sort(head) {
    const numbers = head.dataset.sort !== 'text';
    const order = head.getAttribute('aria-sort');
    const descending = order ? order === 'ascending' : head.dataset.sort === 'number';
    for (const other of all('.apis thead th')) { other.removeAttribute('aria-sort'); }
    head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    const value = row => {
      const cell = row.cells[head.cellIndex];
      return head.dataset.sort === 'rank' ? Number(cell.dataset.rank) : numbers ? Number(cell.textContent) :
        cell.textContent.toLowerCase();
    };
    const keyed = rows.map((row, index) => ({row, index, value: value(row)}));
    const compared = (a, b) => a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
    keyed.sort((a, b) => compared(a, b) * (descending ? -1 : 1) || a.index - b.index);
    const body = document.querySelector('.apis tbody');
    for (const {row} of keyed) {
      body.append(row);
      if (spots.has(row)) { body.append(spots.get(row)); }
    }
  }

  // --- moving about
  function move(step) {
    const found = all('.item:not([hidden]) > summary, .apis tbody tr:not([hidden]) .expand');
    if (!found.length) { return; }
    const active = document.activeElement, bar = byId('toolbar');
    const covered = getComputedStyle(bar).position === 'sticky' ? bar.getBoundingClientRect().bottom : 0;
    const isInside = stop => stop.parentElement.matches('.item') && stop.parentElement.contains(active);
    let at = found.findIndex(stop => stop === active || isInside(stop));
    if (at < 0) {  // from where the reader is: what follows in the page, or what can be seen
      const ahead = stop => active === document.body ? stop.getBoundingClientRect().top >= covered :
        active.compareDocumentPosition(stop) & Node.DOCUMENT_POSITION_FOLLOWING;
      at = found.findIndex(ahead) - (step > 0 ? 1 : 0);
      if (at < -1) { at = found.length; }
    }
    const next = found[Math.min(Math.max(at + step, 0), found.length - 1)];
    next.focus({preventScroll: true});
    next.scrollIntoView({block: 'nearest'});
    const hidden = covered - next.getBoundingClientRect().top;
    if (hidden > 0) { window.scrollBy(0, -hidden - 8); }
  }

  const shownItems = () => items.filter(item => !item.hidden);

  function label() {
    toggle.textContent = shownItems().some(item => !item.open) ? say('Open all') : say('Close all');
  }

  function toggleAll() {
    const open = shownItems().some(item => !item.open);
    for (const item of shownItems()) { item.open = open; }
    label();
  }

  function clear() {
    search.value = rule.value = support.value = '';
    for (const chip of chips) { chip.setAttribute('aria-pressed', 'true'); }
    search.blur();
    change();
  }

  // --- copying
  let telling = 0;
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
    byId('copied').textContent = say('Copied: ') + text;
    clearTimeout(telling);
    telling = setTimeout(() => { byId('copied').textContent = ''; }, 2000);
  }

  // --- events
  search.addEventListener('input', change);
  rule.addEventListener('change', change);
  support.addEventListener('change', change);
  toggle.addEventListener('click', toggleAll);
  byId('help').addEventListener('click', () => byId('keys').showModal());
  for (const item of items) { item.addEventListener('toggle', label); }
  window.addEventListener('hashchange', () => {
    if (location.hash.startsWith('#?')) { recall(); filter(); }
    openTarget();
  });
  document.addEventListener('click', event => {
    const chip = event.target.closest('.chip'), piece = event.target.closest('.piece');
    const opener = event.target.closest('.expand'), head = event.target.closest('.apis thead button');
    const link = event.target.closest('a[href^="#"]');
    if (chip) {
      chip.setAttribute('aria-pressed', String(chip.getAttribute('aria-pressed') !== 'true'));
      change();
    } else if (piece) {
      copy(piece.textContent);
    } else if (opener) {
      expand(opener.closest('tr'), !isExpanded(opener.closest('tr')));
    } else if (head) {
      sort(head.closest('th'));
    } else if (link && link.getAttribute('href') === location.hash) {
      openTarget();
    }
  });
  document.addEventListener('mousedown', event => {  // so that one side can be selected, without the other
    const side = event.target.closest('.diff .old, .diff .new');
    if (side) { side.closest('.diff').dataset.side = side.className; }
  });
  const closed = [];
  window.addEventListener('beforeprint', () => {
    for (const item of shownItems()) { if (!item.open) { item.open = true; closed.push(item); } }
  });
  window.addEventListener('afterprint', () => { for (const item of closed.splice(0)) { item.open = false; } });
  const sections = ['manual-changes', 'rewritten', 'files', 'apis'].map(byId);
  const keys = {
    '/': () => { search.focus(); search.select(); },
    j: () => move(1), k: () => move(-1), o: toggleAll, '?': () => byId('keys').showModal()
  };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId('keys').open) { return; }
    const typing = ['INPUT', 'SELECT'].includes(document.activeElement.tagName);
    if (event.key === 'Escape') {
      clear();
    } else if (event.key === 'Enter' && document.activeElement === search) {
      event.preventDefault();  // or else it would open what gets the focus
      move(1);
    } else if (!typing && keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    } else if (!typing && sections[event.key - 1]) {
      sections[event.key - 1].scrollIntoView();
      sections[event.key - 1].querySelector('h2').focus({preventScroll: true});
    }
  });
  if (byId('unscripted')) { byId('unscripted').remove(); }
  recall();
  filter();
  window.addEventListener('load', () => setTimeout(openTarget));  // behind the browser's own scrolling
})();
