// As much of a VT100 as curses and vi need, to look at what a full-screen program has drawn.
export class Screen {
  constructor(rows, columns) {
    this.rows = rows;
    this.columns = columns;
    this.row = this.column = 0;
    this.top = 0;
    this.bottom = rows - 1;
    this.pending = '';
    this.clear();
  }

  clear() {
    this.cells = Array.from({ length: this.rows }, () => Array(this.columns).fill(' '));
  }

  resize(rows, columns) {
    this.cells = Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (__, c) => this.cells[r]?.[c] ?? ' '));
    Object.assign(this, { rows, columns, top: 0, bottom: rows - 1 });
    this.row = Math.min(this.row, rows - 1);
    this.column = Math.min(this.column, columns - 1);
  }

  line(row) {
    return this.cells[row].join('').trimEnd();
  }
  text() {
    return this.cells.map((_, row) => this.line(row)).join('\n');
  }

  write(data) {
    let text = this.pending + data.toString('utf8');
    this.pending = '';
    while (text) {
      if (text[0] === '\x1b') {
        const match = /^\x1b(?:\[([?>=!]?)([0-9;]*)([ -/]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[()*+#% ].|[0-~])/.exec(text);
        if (!match) {
          this.pending = text;
          return;
        }
        if (match[4]) this.sequence(match[1], match[2], match[4]);
        else this.escape(match[0]);
        text = text.slice(match[0].length);
      } else {
        this.put(text[0]);
        text = text.slice(1);
      }
    }
  }

  put(c) {
    if (c === '\r') this.column = 0;
    else if (c === '\n') this.down();
    else if (c === '\b') this.column = Math.max(0, this.column - 1);
    else if (c === '\t') this.column = Math.min(this.columns - 1, (this.column | 7) + 1);
    else if (c >= ' ') {
      if (this.column >= this.columns) {
        this.column = 0;
        this.down();
      }
      this.cells[this.row][this.column++] = c;
    }
  }

  down() {
    if (this.row === this.bottom) {
      this.cells.splice(this.top, 1);
      this.cells.splice(this.bottom, 0, Array(this.columns).fill(' '));
    } else if (this.row < this.rows - 1) this.row++;
  }

  up() {
    if (this.row === this.top) {
      this.cells.splice(this.bottom, 1);
      this.cells.splice(this.top, 0, Array(this.columns).fill(' '));
    } else if (this.row > 0) this.row--;
  }

  escape(text) {
    if (text === '\x1bM') this.up();
    else if (text === '\x1bD') this.down();
    else if (text === '\x1bE') (this.column = 0), this.down();
    else if (text === '\x1b7') this.saved = [this.row, this.column];
    else if (text === '\x1b8' && this.saved) [this.row, this.column] = this.saved;
  }

  sequence(prefix, numbers, final) {
    const n = numbers.split(';').map((x) => Number(x || 0));
    const one = n[0] || 1;
    const row = this.cells[this.row];
    if (prefix === '?') {
      if (final === 'h' && n.includes(1049)) this.clear();
      return;
    }
    if (prefix) return;
    const clamp = () => {
      this.row = Math.max(0, Math.min(this.rows - 1, this.row));
      this.column = Math.max(0, Math.min(this.columns - 1, this.column));
    };
    const blank = (cells, from, to) => cells.fill(' ', from, to);
    switch (final) {
      case 'H':
      case 'f':
        [this.row, this.column] = [(n[0] || 1) - 1, (n[1] || 1) - 1];
        break;
      case 'A': this.row -= one; break;
      case 'B': this.row += one; break;
      case 'C': this.column += one; break;
      case 'D': this.column -= one; break;
      case 'G': this.column = one - 1; break;
      case 'd': this.row = one - 1; break;
      case 'J':
        if (n[0] === 2 || n[0] === 3) this.clear();
        else if (n[0] === 1) {
          for (let r = 0; r < this.row; r++) blank(this.cells[r]);
          blank(row, 0, this.column + 1);
        } else {
          blank(row, this.column);
          for (let r = this.row + 1; r < this.rows; r++) blank(this.cells[r]);
        }
        return;
      case 'K':
        if (n[0] === 2) blank(row);
        else if (n[0] === 1) blank(row, 0, this.column + 1);
        else blank(row, this.column);
        return;
      case 'X': blank(row, this.column, this.column + one); return;
      case 'P': row.splice(this.column, one); row.push(...Array(this.columns - row.length).fill(' ')); return;
      case '@': row.splice(this.column, 0, ...Array(one).fill(' ')); row.length = this.columns; return;
      case 'b': for (let i = 0, c = row[this.column - 1]; i < one; i++) this.put(c); return;
      case 'L':
      case 'M':
        for (let i = 0; i < one; i++) {
          this.cells.splice(final === 'L' ? this.bottom : this.row, 1);
          this.cells.splice(final === 'L' ? this.row : this.bottom, 0, Array(this.columns).fill(' '));
        }
        return;
      case 'r':
        [this.top, this.bottom] = [(n[0] || 1) - 1, (n[1] || this.rows) - 1];
        this.row = this.column = 0;
        return;
      default:
        return;
    }
    clamp();
  }
}
