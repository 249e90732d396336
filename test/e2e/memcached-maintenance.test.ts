/** memcached's maintenance commands and watch through sockets, with two workers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

describe('maintenance commands of memcached', () => {
  let server: TestServer;
  let client: RawClient;

  beforeAll(async () => {
    server = await startTestServer({ workers: 2 });
    client = await RawClient.connect(server.memcachedPort);
  });

  afterAll(async () => {
    client?.destroy();
    await server?.stop();
  });

  /** The reply to a command that ends with a line of these. */
  async function ask(
    command: string,
    end = /^(END|OK|RESET|EN|ERROR.*|[A-Z_]*(CLASS|SPARE|SAME|ERROR|MEMLIMIT).*)$/,
  ): Promise<string[]> {
    client.write(`${command}\r\n`);
    const lines: string[] = [];
    for (;;) {
      const line = await client.line();
      // Dumps of keys end their lines with LF alone.
      lines.push(...line.split('\n'));
      if (end.test(lines.at(-1)!)) return lines;
    }
  }

  async function stat(group: string, name: string): Promise<string | undefined> {
    const lines = await ask(`stats ${group}`);
    return lines.map((line) => line.split(' ')).find(([, key]) => key === name)?.[2];
  }

  it('cache_memlimit changes limit and memory for all workers, within what the pool was made for', async () => {
    expect(await ask('cache_memlimit 20')).toEqual(['OK']);
    expect(Number(await stat('', 'limit_maxbytes'))).toBe(20 * 1024 * 1024);
    expect(Number(await stat('', 'tier_dram_target_bytes'))).toBe((20 + 4 + 16 + 3) * 1024 * 1024);
    expect(await ask('cache_memlimit 4')).toEqual(['MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m']);
    expect(await ask('cache_memlimit 1000')).toEqual(['MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust']);
    expect(await ask('cache_memlimit x')).toEqual(['ERROR']);
    expect(await ask('cache_memlimit 60')).toEqual(['OK']);
  });

  it('verbosity changes the log level', async () => {
    for (const [level, name] of [
      [2, '2'],
      [9, '3'],
      [0, '0'],
    ]) {
      expect(await ask(`verbosity ${level}`)).toEqual(['OK']);
      expect(await stat('settings', 'verbosity')).toBe(name);
    }
  });

  it('stats detail counts by prefix over all workers, from on to off', async () => {
    expect(await ask('stats detail on')).toEqual(['OK']);
    // The kernel spreads connections over the workers.
    const clients = await Promise.all(Array.from({ length: 8 }, () => RawClient.connect(server.memcachedPort)));
    for (const other of clients) {
      await other.ask('set user:1 0 0 1\r\nx\r\nget user:1\r\n', 'STORED\r\nVALUE user:1 0 1\r\nx\r\nEND\r\n');
      await other.ask('get user:2\r\nmg user:1\r\nget plain\r\n', 'END\r\nHD\r\nEND\r\n');
      await other.ask('delete user:2\r\n', 'NOT_FOUND\r\n');
      other.destroy();
    }
    expect(await ask('stats detail dump')).toEqual(['PREFIX user get 24 hit 16 set 8 del 8', 'END']);
    expect(await ask('stats detail off')).toEqual(['OK']);
    await ask('get user:1', /^END$/);
    expect(await ask('stats detail dump')).toEqual(['PREFIX user get 24 hit 16 set 8 del 8', 'END']);
    expect(await ask('stats reset')).toEqual(['RESET']);
    expect(await ask('stats detail dump')).toEqual(['END']);
  });

  it('dumps every key once, in all three formats', async () => {
    await ask('flush_all');
    const count = 20_000;
    for (let i = 0; i < count; i++) client.write(`set key%${i} 0 ${i % 2 === 0 ? 0 : 3600} 2 noreply\r\nok\r\n`);
    await client.ask('ms YSBi 2 b\r\nok\r\n', 'HD\r\n');
    const meta = await ask('lru_crawler metadump all');
    expect(meta.pop()).toBe('END');
    expect(new Set(meta.map((line) => line.split(' ')[0])).size).toBe(count + 1);
    expect(meta).toHaveLength(count + 1);
    expect(meta.find((line) => line.startsWith('key=key%250 '))).toMatch(
      /^key=key%250 exp=-1 la=\d{10} cas=\d+ fetch=no cls=\d+ size=\d+$/,
    );
    expect(meta.find((line) => line.startsWith('key=key%251 '))).toMatch(/ exp=\d{10} /);
    expect(meta.find((line) => line.startsWith('key=a%20b '))).toBeDefined();
    const mg = await ask('lru_crawler mgdump hash');
    expect(mg.pop()).toBe('EN');
    expect(mg).toHaveLength(count + 1);
    expect(mg).toContain('mg YSBi b');
    expect(mg).toContain('mg key%77');
    const slabClass = /cls=(\d+)/.exec(meta[0])![1];
    const some = await ask(`stats cachedump ${slabClass} 5`);
    expect(some).toHaveLength(6);
    expect(some[0]).toMatch(/^ITEM \S+ \[2 b; \d+ s\]$/);
    expect(await ask('lru_crawler metadump 63')).toEqual(['END']);
    expect(await ask('lru_crawler metadump x')).toEqual(['BADCLASS invalid class id']);
    // Others are served meanwhile, and the connection goes on afterwards.
    await client.ask('get key%1\r\n', 'VALUE key%1 0 2\r\nok\r\nEND\r\n');
  }, 60_000);

  it('answers the crawler only while it is on, and a dump never in a pipeline', async () => {
    await client.ask(
      'mn\r\nlru_crawler metadump all\r\n',
      'MN\r\nERROR cannot pipeline other commands before metadump\r\n',
    );
    expect(await ask('lru_crawler disable')).toEqual(['OK']);
    expect(await stat('settings', 'lru_crawler')).toBe('no');
    for (const command of ['crawl all', 'metadump all', 'mgdump all']) {
      expect(await ask(`lru_crawler ${command}`)).toEqual(['CLIENT_ERROR lru crawler disabled']);
    }
    expect(await ask('lru_crawler enable')).toEqual(['OK']);
    expect(await ask('lru_crawler crawl 1,2')).toEqual(['OK']);
    expect(await stat('', 'lru_crawler_starts')).toBe('1');
  });

  it('slabs reassign frees a page of a class and loses nothing while there is room', async () => {
    await ask('flush_all');
    const value = 'v'.repeat(10_000);
    const count = 1000;
    for (let i = 0; i < count; i++) client.write(`set big${i} 0 0 10000 noreply\r\n${value}\r\n`);
    const slabs = await ask('stats slabs');
    const [, slabClass, pages] = /STAT (\d+):total_pages (\d{1,3})$/m.exec(
      slabs.filter((line) => /:total_pages ([5-9]|\d\d)$/.test(line)).join('\n'),
    )!;
    expect(await ask(`slabs reassign ${slabClass} ${slabClass}`)).toEqual(['SAME src and dst class are identical']);
    expect(await ask(`slabs reassign 1000 1`)).toEqual(['BADCLASS invalid src or dst class id']);
    expect(await ask(`slabs reassign 5 1`)).toEqual(['NOSPARE source class has no spare pages']);
    for (let i = 0; i < count; i += 2) client.write(`delete big${i} noreply\r\n`);
    const moved = Number(await stat('', 'slabs_moved'));
    expect(await ask(`slabs reassign ${slabClass} 0`)).toEqual(['OK']);
    expect(Number(await stat('', 'slabs_moved'))).toBe(moved + 1);
    expect(Number(await stat('slabs', `${slabClass}:total_pages`))).toBeLessThan(Number(pages));
    expect(await stat('', 'curr_items')).toBe(String(count / 2));
    for (let i = 1; i < count; i += 2) await client.ask(`mg big${i} s\r\n`, 'HD s10000\r\n');
  });

  it('checks what it has no use for', async () => {
    const replies: [string, string][] = [
      ['lru tune 10 25 0.1 2.0', 'OK'],
      ['lru tune 50 50 1 1', 'ERROR hot and warm pcts must not exceed 80'],
      ['lru tune 10 10 0 1', 'ERROR hot/warm age factors must be greater than 0'],
      ['lru tune 10 x 1 1', 'ERROR'],
      ['lru mode segmented', 'OK'],
      ['lru mode flat', 'OK'],
      ['lru mode round', 'ERROR'],
      ['lru mode', 'ERROR'],
      ['lru temp_ttl 61', 'OK'],
      ['lru temp_ttl -1', 'OK'],
      ['lru temp_ttl x', 'ERROR'],
      ['lru temp_ttl', 'ERROR'],
      ['lru', 'ERROR'],
      ['slabs automove 1', 'OK'],
      ['slabs automove 3', 'ERROR'],
      ['slabs automove x', 'CLIENT_ERROR bad command line format'],
      ['slabs automove ratio 0.5', 'OK'],
      ['slabs automove ratio x', 'ERROR'],
      ['slabs', 'ERROR'],
      ['lru_crawler sleep 100', 'OK'],
      ['lru_crawler sleep 1000001', 'CLIENT_ERROR sleep must be one second or less'],
      ['lru_crawler tocrawl 5', 'OK'],
      ['lru_crawler tocrawl x', 'CLIENT_ERROR bad command line format'],
      ['lru_crawler', 'ERROR'],
      ['watch nosuch', 'ERROR'],
    ];
    for (const [command, reply] of replies) expect(await ask(command), command).toEqual([reply]);
  });
});

describe('watch', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startTestServer({ workers: 2, dram: '16mb', args: ['--memcached-watch-buffer=4096'] });
  });

  afterAll(async () => {
    await server?.stop();
  });

  async function watching(kinds: string): Promise<RawClient> {
    const watcher = await RawClient.connect(server.memcachedPort);
    await watcher.ask(`watch ${kinds}\r\n`, 'OK\r\n');
    return watcher;
  }

  const logged = (watcher: RawClient, pattern: RegExp): Promise<void> =>
    watcher.until(() => pattern.test(watcher.text), `a line like ${pattern}`);

  it('tells of fetches and stores of all workers', async () => {
    const watcher = await watching('fetchers mutations');
    const clients = await Promise.all(Array.from({ length: 6 }, () => RawClient.connect(server.memcachedPort)));
    for (const [i, client] of clients.entries()) {
      await client.ask(
        `set k%${i} 0 100 5\r\nhello\r\nget k%${i}\r\n`,
        `STORED\r\nVALUE k%${i} 0 5\r\nhello\r\nEND\r\n`,
      );
      await logged(
        watcher,
        new RegExp(
          `^ts=\\d+\\.\\d+ gid=\\d+ type=item_get key=k%25${i} status=not_found clsid=0 cfd=\\d+ size=0$`,
          'm',
        ),
      );
      await logged(
        watcher,
        new RegExp(` type=item_store key=k%25${i} status=stored cmd=set ttl=100 clsid=\\d+ cfd=\\d+ size=5$`, 'm'),
      );
      await logged(
        watcher,
        new RegExp(` type=item_get key=k%25${i} status=found clsid=[1-9]\\d* cfd=\\d+ size=5$`, 'm'),
      );
      client.destroy();
    }
    const gids = [...watcher.text.matchAll(/gid=(\d+)/g)].map(([, gid]) => gid);
    expect(new Set(gids).size).toBe(gids.length);
    watcher.destroy();
  });

  it('tells of connections that come and go, and of evictions', async () => {
    const watcher = await watching('connevents evictions');
    const client = await RawClient.connect(server.memcachedPort);
    await logged(watcher, /type=conn_new rip=127\.0\.0\.1 rport=\d+ transport=tcp cfd=\d+$/m);
    for (let i = 0; i < 300; i++) client.write(`set big${i} 0 0 100000 noreply\r\n${'x'.repeat(100_000)}\r\n`);
    await logged(watcher, /type=eviction key=big\d+ fetch=no ttl=-1 la=\d+ clsid=\d+ size=100000$/m);
    client.write('quit\r\n');
    await logged(watcher, /type=conn_close rip=127\.0\.0\.1 rport=\d+ transport=tcp reason=normal cfd=\d+$/m);
    const faulty = await RawClient.connect(server.memcachedPort);
    faulty.write('GET / HTTP/1.1\r\n');
    await logged(watcher, /type=conn_close .* reason=error cfd=\d+$/m);
    watcher.destroy();
  });

  it('skips lines for a client that does not read, and says how many; others never wait', async () => {
    const watcher = await watching('fetchers');
    watcher.socket.pause();
    const client = await RawClient.connect(server.memcachedPort);
    const key = 'k'.repeat(200);
    for (let i = 0; i < 40; i++) await client.ask(`get ${key}\r\n`.repeat(1000), 'END\r\n'.repeat(1000));
    watcher.socket.resume();
    await watcher.until(() => watcher.text.endsWith('\n'), 'what has been kept');
    await client.ask('get after\r\n', 'END\r\n');
    await logged(watcher, /^skipped=[1-9]\d*$/m);
    await logged(watcher, /type=item_get key=after /m);
    client.destroy();
    watcher.destroy();
  }, 60_000);

  it('counts watchers while they are there, and lets only so many in', async () => {
    const client = await RawClient.connect(server.memcachedPort);
    const count = async (): Promise<string> => {
      client.write('stats\r\nmn\r\n');
      await client.until(() => client.text.endsWith('MN\r\n'), 'statistics');
      const text = (await client.read(client.receivedBytes)).toString('latin1');
      return /STAT log_watchers (\d+)/.exec(text)![1];
    };
    const gone = async (): Promise<void> => {
      for (let i = 0; i < 100 && (await count()) !== '0'; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await gone();
    const watchers = [];
    for (let i = 0; i < 20; i++) watchers.push(await watching('mutations'));
    expect(await count()).toBe('20');
    await client.ask('watch\r\n', 'WATCHER_TOO_MANY log watcher limit reached\r\n');
    await client.ask('mn\r\nwatch\r\n', 'MN\r\nERROR cannot pipeline other commands before watch\r\n');
    for (const watcher of watchers) watcher.destroy();
    await gone();
    expect(await count()).toBe('0');
    client.destroy();
  });

  it('is refused when it is switched off', async () => {
    const other = await startTestServer({ args: ['--no-memcached-watch'] });
    const client = await RawClient.connect(other.memcachedPort);
    await client.ask('watch\r\n', 'CLIENT_ERROR watch commands not allowed\r\n');
    client.destroy();
    await other.stop();
  });
});
