/**
 * Carrying out the commands of an append-only file, by the ordinary executor and in nobody's name.
 *
 * Nothing expires meanwhile: the file says itself what was deleted because its time had come, and what it changed before that. Invariant: a
 * transaction takes effect with its EXEC, or not at all; what cannot be carried out because something is missing here (memory, a
 * database, a command) is thrown as an RdbError.
 */
import type { Settings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../layout/counters.js';
import { createSharedScripts } from '../../layout/shared-scripts.js';
import { Send } from '../../native/addon.js';
import { Output } from '../../protocol/output.js';
import { Reply } from '../../protocol/resp/reply.js';
import type { AofReader } from '../../rdb/aof-reader.js';
import { RdbError } from '../../rdb/format.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Users } from '../acl/users.js';
import { Client } from '../clients/client.js';
import type { Environment } from '../environment.js';
import { Executor } from '../executor.js';
import { createCommandTable } from '../families.js';
import { Scripting } from '../scripting/scripting.js';

const REPLY_BYTES = 64 * 1024;
const RECORDS = 4;
const SHOWN_MAX = 100;
/** Replies after which the data would not be what the file says. Others Redis lets pass, too: a script may have ended with an error. */
const FATAL = /^(OOM|EXECABORT) |key is too long|the transaction is too large/;

export class Replay {
  /** Commands that were answered with an error, and the first of these answers. */
  errors = 0;
  firstError = '';
  /** Where the transaction in hand begins in the file; -1 = there is none. */
  transactionAt = -1;

  readonly #executor: Executor;
  readonly #client: Client;
  readonly #reply: Reply;
  readonly #output: Output;

  /** `librariesPath`: where the libraries of functions are kept. */
  constructor(keyspace: Keyspace, settings: Readonly<Settings>, librariesPath: string) {
    const table = createCommandTable();
    const block = createCounterBlock(1);
    let scripting: Scripting | null = null;
    const environment: Environment = {
      keyspace,
      users: new Users(table),
      settings,
      counters: new CounterRow(block, 0),
      totals: new CounterTotals(block, createCounterBaseline()),
      control: null,
      scripting: () => {
        scripting ??= new Scripting(createSharedScripts(), this.#executor, 0, librariesPath);
        return scripting;
      },
      reportFault: (error) => {
        throw error;
      },
    };
    const bytes = Bytes.allocate(REPLY_BYTES);
    this.#output = new Output(bytes, new Int32Array(RECORDS * Send.WORDS), () => undefined);
    this.#reply = new Reply(this.#output);
    this.#executor = new Executor(environment, table, this.#reply);
    this.#client = new Client(0, 0, '', environment.users.default);
    this.#client.authenticated = true;
  }

  /** Each file begins in database 0. */
  beginFile(): void {
    this.#client.db = 0;
  }

  /** Carries out the reader's command. Inside a batch. */
  run(reader: AofReader): void {
    const { context } = this.#executor;
    const client = this.#client;
    context.bind(client, reader.bytes, reader.args, 0, reader.argc);
    const command = this.#executor.lookup();
    if (command === null) throw new RdbError(`the command '${shownName(reader)}' is not known`);
    if (!command.accepts(reader.argc)) throw new RdbError(`'${command.fullName}' has another number of arguments`);
    const errorsBefore = this.#reply.errorCount;
    this.#output.restart();
    this.#output.begin(0);
    do {
      this.#executor.execute(command, false);
    } while (client.work !== null);
    this.#output.end();
    if (client.transaction === null) this.transactionAt = -1;
    else if (this.transactionAt < 0) this.transactionAt = reader.begin;
    if (this.#reply.errorCount !== errorsBefore) this.#judge(command.fullName);
  }

  #judge(name: string): void {
    const text = this.#errorText();
    if (name === 'select' || FATAL.test(text)) throw new RdbError(`'${name}' cannot be carried out: ${text}`);
    if (this.errors++ === 0) this.firstError = `'${name}': ${text}`;
  }

  /** The first error of the reply that lies in the output, if it is still there. */
  #errorText(): string {
    const text = Buffer.from(this.#output.u8.subarray(0, this.#output.position)).toString('latin1');
    return /(?:^|\n)-([^\r\n]*)/.exec(text)?.[1] ?? 'an error';
  }
}

function shownName({ bytes, args }: AofReader): string {
  const name = bytes.u8.subarray(args[0], args[0] + Math.min(args[1], SHOWN_MAX));
  return Buffer.from(name)
    .toString('latin1')
    .replace(/[^ -~]/g, '?');
}
