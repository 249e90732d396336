# The addon's build. No -march=native: one binary must run on every CPU of its architecture (faster instructions are
# chosen at run time). `entresol_sanitize=true` is what `npm run build:native:asan` sets.
{
  'variables': { 'entresol_sanitize%': 'false' },
  'targets': [
    {
      'target_name': 'entresol',
      'sources': [
        'module.c',
        'errors.c',
        'arena.c',
        'fault.c',
        'region.c',
        'persist.c',
        'bytes.c',
        'crc32c.c',
        'sync.c',
        'event.c',
        'machine.c',
        'pump.c',
        'pump_accept.c',
        'pump_conn.c',
        'pump_held.c',
        'pump_idle.c',
        'pump_input.c',
        'pump_listen.c',
        'pump_module.c',
        'pump_module_conn.c',
        'pump_send.c',
        'pump_udp.c',
        'pump_unix.c',
      ],
      'defines': [ 'NAPI_VERSION=8', '_GNU_SOURCE' ],
      'cflags': [ '-O3', '-std=gnu11', '-Wall', '-Wextra', '-fvisibility=hidden' ],
      'conditions': [
        [ 'entresol_sanitize=="true"', {
          'cflags!': [ '-O3' ],
          'cflags': [ '-O1', '-g', '-fno-omit-frame-pointer', '-fsanitize=address,undefined', '-fno-sanitize-recover=undefined' ],
          'ldflags': [ '-fsanitize=address,undefined' ],
        } ],
      ],
    },
  ],
}
