/** A made-up /proc and /sys in a temporary folder, for what reads machine facts below a root. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

export class SystemTree {
  readonly root = mkdtempSync(join(tmpdir(), 'entresol-system-'));

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), `${content}\n`);
  }

  writeAll(files: Readonly<Record<string, string>>): void {
    for (const [path, content] of Object.entries(files)) this.write(path, content);
  }

  /** A relative link, as sysfs has them. */
  link(path: string, target: string): void {
    const from = join(this.root, path);
    mkdirSync(dirname(from), { recursive: true });
    symlinkSync(relative(dirname(from), join(this.root, target)), from);
  }

  remove(): void {
    rmSync(this.root, { recursive: true });
  }
}
