/**
 * One-off questions to a server: a RESP command with a simple or bulk reply, memcached `stats`. Not for load.
 */
import { connect } from 'node:net';

/** Sends `text` and collects the answer until `isWhole` says so. */
function exchange(
  port: number,
  text: string,
  isWhole: (answer: string) => boolean,
  timeoutMs: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.setEncoding('latin1');
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`no answer to ${JSON.stringify(text)} in ${timeoutMs} ms`)),
    );
    socket.once('error', reject);
    socket.once('connect', () => socket.write(text, 'latin1'));
    socket.once('close', () => reject(new Error(`connection closed before the answer to ${JSON.stringify(text)}`)));
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (!isWhole(answer)) return;
      resolve(answer);
      socket.destroy();
    });
  });
}

function isWholeReply(answer: string): boolean {
  const lineEnd = answer.indexOf('\r\n');
  if (lineEnd < 0) return false;
  const kind = answer[0];
  if (kind !== '$' && kind !== '=') return true;
  const bytes = Number(answer.slice(1, lineEnd));
  return bytes < 0 || answer.length >= lineEnd + 4 + bytes;
}

/** The reply's text; throws on an error reply. */
export async function redisCommand(port: number, ...words: string[]): Promise<string> {
  const request = `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
  const answer = await exchange(port, request, isWholeReply, 60_000);
  const lineEnd = answer.indexOf('\r\n');
  if (answer[0] === '-') throw new Error(`${words.join(' ')}: ${answer.slice(1, lineEnd)}`);
  if (answer[0] === '$' || answer[0] === '=') return answer.slice(lineEnd + 2, -2);
  return answer.slice(1, lineEnd);
}

/** INFO as a flat table of its `name:value` lines. */
export async function redisInfo(port: number, ...sections: string[]): Promise<Map<string, string>> {
  const text = await redisCommand(port, 'INFO', ...sections);
  const table = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0 && line[0] !== '#') table.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return table;
}

export async function memcachedStats(port: number, section = ''): Promise<Map<string, string>> {
  const request = section === '' ? 'stats\r\n' : `stats ${section}\r\n`;
  const answer = await exchange(port, request, (text) => /(^|\n)(END|[A-Z_]*ERROR.*)\r\n$/.test(text), 10_000);
  const table = new Map<string, string>();
  for (const match of answer.matchAll(/^STAT (\S+) (.*)\r$/gm)) table.set(match[1], match[2]);
  return table;
}
