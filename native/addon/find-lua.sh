#!/bin/sh
# Prints where Lua 5.1's static library or headers are, for binding.gyp; nothing where either is missing. The library must be the static one:
# the addon carries it, so that it runs on machines without Lua.
for folder in "$(${CC:-cc} -print-multiarch 2>/dev/null)" lib lib64; do
  library="/usr/lib/$folder/liblua5.1.a"
  [ "$folder" != "" ] && [ -f "$library" ] && break
  library=""
done
include=""
for folder in /usr/include/lua5.1 /usr/include/lua51; do
  [ -f "$folder/lua.h" ] && include="$folder" && break
done
[ "$library" = "" ] || [ "$include" = "" ] && exit 0
if [ "$1" = library ]; then echo "$library"; else echo "$include"; fi
