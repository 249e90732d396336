/*
 * Coded JavaScript errors and argument reading.
 *
 * Owns nothing. Errors look like those of node:fs: "ENOSPC: no space left on device, posix_fallocate '/pool'", with
 * code, errno (negative, as Node has it), syscall and path.
 */
#include "addon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

static void set_string(napi_env env, napi_value object, const char *name, const char *text) {
  napi_value value = make_string(env, text);
  if (value != NULL) napi_set_named_property(env, object, name, value);
}

napi_value throw_coded(napi_env env, const char *code, int error, const char *syscall, const char *path, const char *text) {
  char message[4608];
  if (path != NULL) {
    snprintf(message, sizeof message, "%s: %s, %s '%s'", code, text, syscall, path);
  } else {
    snprintf(message, sizeof message, "%s: %s, %s", code, text, syscall);
  }
  napi_value code_value = make_string(env, code), message_value = make_string(env, message), object;
  if (code_value == NULL || message_value == NULL) return NULL;
  if (napi_create_error(env, code_value, message_value, &object) != napi_ok) return throw_status(env);
  napi_value number = make_int32(env, error < 0 ? error : -error);
  if (number != NULL) napi_set_named_property(env, object, "errno", number);
  set_string(env, object, "syscall", syscall);
  if (path != NULL) set_string(env, object, "path", path);
  napi_throw(env, object);
  return NULL;
}

napi_value throw_errno(napi_env env, int error, const char *syscall, const char *path) {
  char code[64], text[256];
  /* libuv speaks of sockets here, which a mapping is not. */
  if (error == EOPNOTSUPP) return throw_coded(env, "EOPNOTSUPP", error, syscall, path, "operation not supported");
  uv_err_name_r(-error, code, sizeof code);
  uv_strerror_r(-error, text, sizeof text);
  return throw_coded(env, code, error, syscall, path, text);
}

napi_value throw_fd_errno(napi_env env, int error, const char *syscall, int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return throw_errno(env, error, syscall, NULL);
  path[length] = '\0';
  return throw_errno(env, error, syscall, path);
}

napi_value throw_range(napi_env env, const char *text) {
  napi_throw_range_error(env, "ERR_OUT_OF_RANGE", text);
  return NULL;
}

napi_value throw_type(napi_env env, const char *text) {
  napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", text);
  return NULL;
}

napi_value throw_status(napi_env env) {
  bool pending = false;
  const napi_extended_error_info *details = NULL;
  napi_get_last_error_info(env, &details);
  const char *text = details != NULL && details->error_message != NULL ? details->error_message : "Node-API call failed";
  napi_is_exception_pending(env, &pending);
  if (!pending) napi_throw_error(env, "ERR_NODE_API", text);
  return NULL;
}

bool read_args(napi_env env, napi_callback_info info, size_t count, napi_value *args, void **data) {
  size_t given = count;
  if (napi_get_cb_info(env, info, &given, args, NULL, data) != napi_ok) return throw_status(env) != NULL;
  if (given < count) return throw_type(env, "missing arguments") != NULL;
  return true;
}

bool read_int64(napi_env env, napi_value value, int64_t *out) {
  if (napi_get_value_int64(env, value, out) == napi_ok) return true;
  return throw_type(env, "expected a number") != NULL;
}

bool read_int32(napi_env env, napi_value value, int32_t *out) {
  if (napi_get_value_int32(env, value, out) == napi_ok) return true;
  return throw_type(env, "expected a number") != NULL;
}

bool read_double(napi_env env, napi_value value, double *out) {
  if (napi_get_value_double(env, value, out) == napi_ok) return true;
  return throw_type(env, "expected a number") != NULL;
}

bool read_bool(napi_env env, napi_value value, bool *out) {
  if (napi_get_value_bool(env, value, out) == napi_ok) return true;
  return throw_type(env, "expected a boolean") != NULL;
}

char *read_string(napi_env env, napi_value value) {
  size_t bytes = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &bytes) != napi_ok) {
    throw_type(env, "expected a string");
    return NULL;
  }
  char *text = malloc(bytes + 1);
  if (text == NULL) {
    napi_throw_error(env, "ENOMEM", "out of memory");
    return NULL;
  }
  napi_get_value_string_utf8(env, value, text, bytes + 1, &bytes);
  if (strlen(text) != bytes) {
    free(text);
    throw_type(env, "the string holds a zero byte");
    return NULL;
  }
  return text;
}

napi_value make_int32(napi_env env, int32_t value) {
  napi_value result;
  return napi_create_int32(env, value, &result) == napi_ok ? result : throw_status(env);
}

napi_value make_uint32(napi_env env, uint32_t value) {
  napi_value result;
  return napi_create_uint32(env, value, &result) == napi_ok ? result : throw_status(env);
}

napi_value make_double(napi_env env, double value) {
  napi_value result;
  return napi_create_double(env, value, &result) == napi_ok ? result : throw_status(env);
}

napi_value make_bool(napi_env env, bool value) {
  napi_value result;
  return napi_get_boolean(env, value, &result) == napi_ok ? result : throw_status(env);
}

napi_value make_string(napi_env env, const char *text) {
  napi_value result;
  return napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &result) == napi_ok ? result : throw_status(env);
}

bool define_methods(napi_env env, napi_value object, const method *methods, size_t count, void *data) {
  for (size_t i = 0; i < count; i++) {
    napi_value function;
    if (napi_create_function(env, methods[i].name, NAPI_AUTO_LENGTH, methods[i].call, data, &function) != napi_ok ||
        napi_set_named_property(env, object, methods[i].name, function) != napi_ok) {
      throw_status(env);
      return false;
    }
  }
  return true;
}
