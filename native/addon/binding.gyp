# The addon's build. No -march=native: one binary must run on every CPU of its architecture (faster instructions are
# chosen at run time). `entresol_sanitize=true` is what `npm run build:native:asan` sets.
{
  'variables': {
    'entresol_sanitize%': 'false',
    # The path of liblua5.1.a (Debian: liblua5.1-0-dev), or empty: then there are no scripts.
    'lua_library%': '<!(sh find-lua.sh library)',
    'lua_include%': '<!(sh find-lua.sh include)',
  },
  'targets': [
    {
      'target_name': 'entresol',
      'sources': [
        'module.c',
        'angle.c',
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
        'spin.c',
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
      'libraries': [ '-lm' ],
      'conditions': [
        [ 'lua_library!=""', {
          'sources': [
            'lua_bit.c',
            'lua_format.c',
            'lua_json.c',
            'lua_json_decode.c',
            'lua_library.c',
            'lua_module.c',
            'lua_msgpack.c',
            'lua_redis.c',
            'lua_reply.c',
            'lua_run.c',
            'lua_sandbox.c',
            'lua_struct.c',
          ],
          'include_dirs': [ '<(lua_include)' ],
          # --wrap: see lua_module.c. --exclude-libs: another Lua in the process must not be called instead.
          'ldflags': [ '-Wl,--wrap=stdin,--wrap=stdout,--wrap=stderr', '-Wl,--exclude-libs,ALL' ],
          'libraries': [ '<(lua_library)', '-lm' ],
        }, { 'sources': [ 'lua_missing.c' ] } ],
        [ 'entresol_sanitize=="true"', {
          'cflags!': [ '-O3' ],
          'cflags': [ '-O1', '-g', '-fno-omit-frame-pointer', '-fsanitize=address,undefined', '-fno-sanitize-recover=undefined' ],
          'ldflags': [ '-fsanitize=address,undefined' ],
        } ],
      ],
    },
  ],
}
