// The least that a test needs: named checks that can fail.
let failures = 0, passed = 0;

/** @param {boolean} holds @param {string} what */
export function check(holds, what) {
  if (holds) passed++;
  else { failures++; console.error(`  FAILED: ${what}`); }
}

/** @param {string} name @param {() => Promise<void> | void} body */
export async function test(name, body) {
  const before = failures;
  try { await body(); } catch (e) { failures++; console.error(e); }
  console.log(`${failures === before ? 'ok    ' : 'FAILED'} ${name}`);
}

export function finish() {
  console.log(`${passed} checks hold, ${failures} do not`);
  process.exitCode = failures ? 1 : 0;
}
