/*
 * cjson.decode: JSON text to Lua values.
 *
 * Reads token by token, as the error texts tell ("Expected value but found T_COMMA at character 3"). Numbers may also be hexadecimal, inf
 * or nan unless decode_invalid_numbers is off. The invariant: a Lua string ends with a zero byte that is not part of it, so looking
 * at the next character is always allowed; a zero byte ends the text.
 */
#include "lua_json.h"
#include "lua_buffer.h"

#include <stdlib.h>
#include <strings.h>

enum token_type { OBJECT_BEGIN, OBJECT_END, ARRAY_BEGIN, ARRAY_END, STRING, NUMBER, BOOLEAN, NIL, COLON, COMMA, END, BROKEN };

static const char *const TOKEN_NAMES[] = {
    "T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL", "T_COLON", "T_COMMA", "T_END"};

typedef struct decoder {
  lua_State *state;
  const json_settings *settings;
  const char *text, *at;
  int depth;
  byte_string unescaped; /* strings with escapes are put together here */
  /* the token in hand */
  enum token_type type;
  size_t start; /* where it begins, or what is broken in it */
  const char *problem;
  const char *string;
  size_t length;
  double number;
  bool boolean;
} decoder;

static void fail(decoder *d, const char *expected) {
  const char *found = d->type == BROKEN ? d->problem : TOKEN_NAMES[d->type];
  luaL_error(d->state, "Expected %s but found %s at character %d", expected, found, (int)d->start + 1);
}

static void set_broken(decoder *d, const char *problem) {
  d->type = BROKEN;
  d->start = (size_t)(d->at - d->text);
  d->problem = problem;
}

/* ---- strings ---- */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits, or -1. Stops at the end of the text. */
static int code_unit(const char *at) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    const int digit = hex_digit(at[i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

static void append_utf8(byte_string *out, int point) {
  if (point < 0x80) {
    bytes_append_byte(out, point);
    return;
  }
  int tail = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static const int leads[] = {0, 0xc0, 0xe0, 0xf0};
  bytes_append_byte(out, leads[tail] | point >> (6 * tail));
  while (tail-- > 0) bytes_append_byte(out, 0x80 | (point >> (6 * tail) & 0x3f));
}

/* At the backslash of \uXXXX, which may be the first of a pair. False = it is none. */
static bool read_unicode(decoder *d) {
  int point = code_unit(d->at + 2);
  int length = 6;
  if (point < 0) return false;
  if (point >= 0xd800 && point < 0xe000) {
    if (point >= 0xdc00 || d->at[6] != '\\' || d->at[7] != 'u') return false;
    const int low = code_unit(d->at + 8);
    if (low < 0xdc00 || low >= 0xe000) return false;
    point = 0x10000 + ((point & 0x3ff) << 10 | (low & 0x3ff));
    length = 12;
  }
  append_utf8(&d->unescaped, point);
  d->at += length;
  return true;
}

/* At the backslash. False = broken. */
static bool read_escape(decoder *d) {
  static const char from[] = "\"\\/btnfr", to[] = "\"\\/\b\t\n\f\r";
  const char c = d->at[1];
  if (c == 'u') {
    if (read_unicode(d)) return true;
    set_broken(d, "invalid unicode escape code");
    return false;
  }
  const char *found = c == '\0' ? NULL : strchr(from, c);
  if (found == NULL) {
    set_broken(d, "invalid escape code");
    return false;
  }
  bytes_append_byte(&d->unescaped, to[found - from]);
  d->at += 2;
  return true;
}

static void read_text(decoder *d) {
  const char *run = ++d->at;
  bool has_escapes = false;
  d->unescaped.used = 0;
  for (;;) {
    while (*d->at != '"' && *d->at != '\\' && *d->at != '\0') d->at++;
    if (*d->at == '\0') {
      set_broken(d, "unexpected end of string");
      return;
    }
    if (*d->at == '"' && !has_escapes) break;
    bytes_append(&d->unescaped, run, (size_t)(d->at - run));
    if (*d->at == '"') break;
    has_escapes = true;
    if (!read_escape(d)) return;
    run = d->at;
  }
  d->string = has_escapes ? (const char *)d->unescaped.data : run;
  d->length = has_escapes ? d->unescaped.used : (size_t)(d->at - run);
  d->at++;
  d->type = STRING;
}

/* ---- other tokens ---- */

/* What strtod takes and JSON does not: a leading plus or zero, hexadecimal, inf, nan. */
static bool is_lenient_number(const char *p) {
  if (*p == '+') return true;
  if (*p == '-') p++;
  if (*p == '0') return (p[1] | 0x20) == 'x' || (p[1] >= '0' && p[1] <= '9');
  if (*p <= '9') return false;
  return strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0;
}

static void read_number(decoder *d) {
  char *end;
  d->number = strtod(d->at, &end);
  if (end == d->at) {
    set_broken(d, "invalid number");
    return;
  }
  d->at = end;
  d->type = NUMBER;
}

static void read_word(decoder *d, const char *word, enum token_type type, bool value) {
  d->at += strlen(word);
  d->type = type;
  d->boolean = value;
}

static void next_token(decoder *d) {
  static const char single[] = "{}[]:,";
  static const enum token_type single_types[] = {OBJECT_BEGIN, OBJECT_END, ARRAY_BEGIN, ARRAY_END, COLON, COMMA};
  while (*d->at == ' ' || *d->at == '\t' || *d->at == '\n' || *d->at == '\r') d->at++;
  d->start = (size_t)(d->at - d->text);
  const char c = *d->at;
  if (c == '\0') {
    d->type = END;
    return;
  }
  const char *found = strchr(single, c);
  const bool is_lenient = d->settings->decode_invalid != INVALID_OFF;
  if (found != NULL) {
    d->at++;
    d->type = single_types[found - single];
  } else if (c == '"') {
    read_text(d);
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    if (!is_lenient && is_lenient_number(d->at)) set_broken(d, "invalid number");
    else read_number(d);
  } else if (strncmp(d->at, "true", 4) == 0) {
    read_word(d, "true", BOOLEAN, true);
  } else if (strncmp(d->at, "false", 5) == 0) {
    read_word(d, "false", BOOLEAN, false);
  } else if (strncmp(d->at, "null", 4) == 0) {
    read_word(d, "null", NIL, false);
  } else if (is_lenient && is_lenient_number(d->at)) {
    read_number(d);
  } else {
    set_broken(d, "invalid token");
  }
}

/* ---- values ---- */

static void push_value(decoder *d);

static void descend(decoder *d) {
  d->depth++;
  if (d->depth <= d->settings->decode_depth_max && lua_checkstack(d->state, 4)) return;
  luaL_error(d->state, "Found too many nested data structures (%d) at character %d", d->depth, (int)(d->at - d->text));
}

static void push_object(decoder *d) {
  descend(d);
  lua_newtable(d->state);
  next_token(d);
  while (d->type != OBJECT_END) {
    if (d->type != STRING) fail(d, "object key string");
    lua_pushlstring(d->state, d->string, d->length);
    next_token(d);
    if (d->type != COLON) fail(d, "colon");
    next_token(d);
    push_value(d);
    lua_rawset(d->state, -3);
    next_token(d);
    if (d->type == OBJECT_END) break;
    if (d->type != COMMA) fail(d, "comma or object end");
    next_token(d);
    if (d->type == OBJECT_END) fail(d, "object key string");
  }
  d->depth--;
}

static void push_array(decoder *d) {
  descend(d);
  lua_newtable(d->state);
  next_token(d);
  for (int i = 1; d->type != ARRAY_END; i++) {
    push_value(d);
    lua_rawseti(d->state, -2, i);
    next_token(d);
    if (d->type == ARRAY_END) break;
    if (d->type != COMMA) fail(d, "comma or array end");
    next_token(d);
    if (d->type == ARRAY_END) fail(d, "value");
  }
  d->depth--;
}

/* The value that begins with the token in hand. */
static void push_value(decoder *d) {
  switch (d->type) {
    case STRING: lua_pushlstring(d->state, d->string, d->length); return;
    case NUMBER: lua_pushnumber(d->state, d->number); return;
    case BOOLEAN: lua_pushboolean(d->state, d->boolean); return;
    case NIL: lua_pushlightuserdata(d->state, NULL); return; /* nil would delete the entry */
    case OBJECT_BEGIN: push_object(d); return;
    case ARRAY_BEGIN: push_array(d); return;
    default: fail(d, "value");
  }
}

int json_decode(lua_State *state) {
  luaL_argcheck(state, lua_gettop(state) == 1, 1, "expected 1 argument");
  size_t length;
  const char *text = luaL_checklstring(state, 1, &length);
  if (length >= 2 && (text[0] == '\0' || text[1] == '\0')) return luaL_error(state, "JSON parser does not support UTF-16 or UTF-32");
  decoder d = {.state = state, .settings = json_settings_of(state), .text = text, .at = text};
  bytes_open(&d.unescaped, state);
  next_token(&d);
  push_value(&d);
  next_token(&d);
  if (d.type != END) fail(&d, "the end");
  return 1;
}
