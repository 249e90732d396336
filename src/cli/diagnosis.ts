/**
 * What doctor finds for given settings; `serve` asks the same at its start. The tier is chosen by the store's own decideTier.
 *
 * Invariant: looks only. No file appears in the pool, no pool is made.
 */
import { existsSync } from 'node:fs';
import type { Settings } from '../config/index.js';
import { FINDINGS, type Finding, levelOf } from '../devices/findings.js';
import { judge, type Plan } from '../devices/judge.js';
import { type MachineFacts, readMachineFacts } from '../devices/machine-facts.js';
import { PERSISTENCE_WORDS, persistenceOf } from '../devices/persistence.js';
import { examine, type Subject } from '../devices/subject.js';
import { Page } from '../layout/location.js';
import { PoolError } from '../store/errors.js';
import { decideTier, findStore } from '../store/open.js';
import type { TierDecision } from '../store/tier.js';

export interface Diagnosis {
  readonly subject: Subject;
  readonly machine: MachineFacts;
  readonly plan: Plan;
  /** Undefined where no tier can be chosen; a finding says why. */
  readonly decision: TierDecision | undefined;
  readonly findings: readonly Finding[];
}

export type Verdict = 'fit' | 'warnings' | 'unusable';

const WITHOUT_FILES = ['devdax', 'block-device', 'no-directory', 'virtual', 'hugetlbfs'];

/** Throws what the system says of a path that cannot even be looked at. */
export function diagnose(settings: Settings): Diagnosis {
  const subject = examine(settings.pool);
  const machine = readMachineFacts();
  const isNode = subject.kind === 'numa-node';
  const numaNode = isNode ? subject.node : settings.numaNode;
  const choice = isNode ? 'numa' : settings.tier;
  let decision: TierDecision | undefined;
  let refusal = '';
  if (!WITHOUT_FILES.includes(subject.kind)) {
    const pages = Math.floor(settings.capacity / Page.BYTES);
    try {
      decision = decideTier(choice, subject.place, pages, numaNode, subject.dax);
    } catch (error) {
      if (!(error instanceof PoolError)) throw error;
      refusal = error.message;
    }
  }
  const plan: Plan = {
    dramBytes: settings.dram,
    capacityBytes: settings.capacity,
    tier: decision?.tier,
    refusal,
    ...poolIn(subject),
    numaNode,
    clientsMax: settings.maxclients,
  };
  return { subject, machine, plan, decision, findings: judge(subject, machine, plan) };
}

function poolIn({ exists, kind, path }: Subject): { hasPool: boolean; poolProblem: string } {
  if (!exists || WITHOUT_FILES.includes(kind) || kind === 'numa-node' || !existsSync(path)) {
    return { hasPool: false, poolProblem: '' };
  }
  try {
    return { hasPool: findStore(path) !== null, poolProblem: '' };
  } catch (error) {
    if (!(error instanceof PoolError)) throw error;
    return { hasPool: false, poolProblem: error.message };
  }
}

export function verdictOf({ findings }: Diagnosis): Verdict {
  if (findings.some((finding) => levelOf(finding) === 'error')) return 'unusable';
  return findings.some((finding) => levelOf(finding) === 'warning') ? 'warnings' : 'fit';
}

const SHOWN_AT_START = 2;

/**
 * What serve says at its start: nothing on an ordinary machine; else the tier, where it is not a plain file, and what speaks
 * against the path.
 */
export function startLines(diagnosis: Diagnosis): { notice: string; warning: string } {
  const { subject, decision, findings } = diagnosis;
  const isSpecial = decision !== undefined && (decision.tier === 'dax' || decision.tier === 'numa');
  const notice = isSpecial
    ? `capacity tier ${decision.tier} (${decision.reason}); durability ${PERSISTENCE_WORDS[persistenceOf(subject, decision.tier)]}`
    : '';
  const bad = findings.filter((finding) => levelOf(finding) !== 'note' && FINDINGS[finding.code].about === 'path');
  if (bad.length === 0) return { notice, warning: '' };
  const shown = bad.slice(0, SHOWN_AT_START).map(({ code, message }) => `${message} (${code})`);
  const more = bad.length > SHOWN_AT_START ? `; and ${bad.length - SHOWN_AT_START} more` : '';
  return { notice, warning: `${shown.join('; ')}${more}. See entresol doctor ${subject.path}` };
}
