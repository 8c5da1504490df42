"""The script of the HTML report: search, filter, and the keyboard. The page is whole without it."""

SCRIPT = '''
'use strict';
(function () {
  const search = document.getElementById('search');
  const rule = document.getElementById('rule');
  const shown = document.getElementById('shown');
  const toggle = document.getElementById('toggle');
  const chips = Array.from(document.querySelectorAll('.chip'));
  const items = Array.from(document.querySelectorAll('.item'));
  const said = new Map(items.map(item => [item, Array.from(item.querySelectorAll('.said > li'))]));
  const texts = new Map();
  for (const item of items) {
    const title = item.querySelector('summary').textContent;
    for (const line of said.get(item)) {
      texts.set(line, [title, line.dataset.path, line.dataset.rule, line.textContent].join(' ').toLowerCase());
    }
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const kinds = new Set(chips.filter(c => c.getAttribute('aria-pressed') === 'true').map(c => c.dataset.kind));
    let files = 0, places = 0;
    for (const item of items) {
      let visible = 0;
      for (const line of said.get(item)) {
        const text = texts.get(line);
        line.hidden = !kinds.has(line.dataset.kind) || (rule.value && line.dataset.rule !== rule.value) ||
          !words.every(word => text.includes(word));
        visible += line.hidden ? 0 : 1;
      }
      item.hidden = visible === 0;
      if (item.classList.contains('file') && visible) { files += 1; places += visible; }
    }
    shown.textContent = places + (places === 1 ? ' place in ' : ' places in ') + files + (files === 1 ? ' file' : ' files');
    label();
  }

  function visibleItems() { return items.filter(item => !item.hidden); }

  function label() {
    toggle.textContent = visibleItems().some(item => !item.open) ? 'Open all' : 'Close all';
  }

  function move(step) {
    const all = visibleItems();
    if (!all.length) { return; }
    const at = all.findIndex(item => item.contains(document.activeElement));
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    const summary = all[next].querySelector('summary');
    summary.focus({preventScroll: true});
    summary.scrollIntoView({block: 'nearest'});
  }

  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === 'DETAILS') {
      target.open = true;
      target.scrollIntoView();
      target.querySelector('summary').focus({preventScroll: true});
    }
  }

  search.addEventListener('input', filter);
  rule.addEventListener('change', filter);
  for (const chip of chips) {
    chip.addEventListener('click', () => {
      chip.setAttribute('aria-pressed', String(chip.getAttribute('aria-pressed') !== 'true'));
      filter();
    });
  }
  toggle.addEventListener('click', () => {
    const open = visibleItems().some(item => !item.open);
    for (const item of visibleItems()) { item.open = open; }
    label();
  });
  for (const item of items) { item.addEventListener('toggle', label); }
  window.addEventListener('hashchange', openTarget);
  document.addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute('href') === location.hash) { openTarget(); }
  });
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    const typing = ['INPUT', 'SELECT'].includes(document.activeElement.tagName);
    if (event.key === 'Escape') {
      search.value = '';
      rule.value = '';
      for (const chip of chips) { chip.setAttribute('aria-pressed', 'true'); }
      search.blur();
      filter();
    } else if (event.key === '/' && !typing) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (!typing && (event.key === 'j' || event.key === 'k')) {
      event.preventDefault();
      move(event.key === 'j' ? 1 : -1);
    } else if (document.activeElement === search && event.key === 'Enter') {
      move(1);
    }
  });
  filter();
  openTarget();
})();
'''
