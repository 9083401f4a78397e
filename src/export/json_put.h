/* Members of JSON objects. SW_UNKNOWN and NaN become null. */
#ifndef SW_EXPORT_JSON_PUT_H
#define SW_EXPORT_JSON_PUT_H

#include <math.h>

#include <stepwatch/analyze.h>
#include <stepwatch/write.h>

static inline void put_string(sw_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_string(w, text);
}

static inline void put_uint(sw_writer *w, const char *key, uint64_t value)
{
    sw_json_key(w, key);
    if (value == SW_UNKNOWN) {
        sw_json_null(w);
    } else {
        sw_json_uint(w, value);
    }
}

static inline void put_double(sw_writer *w, const char *key, double value)
{
    sw_json_key(w, key);
    sw_json_double(w, value);
}

static inline void put_bool(sw_writer *w, const char *key, bool value)
{
    sw_json_key(w, key);
    sw_json_bool(w, value);
}

static inline void put_ms(sw_writer *w, const char *key, uint64_t ns)
{
    put_double(w, key, ns == SW_UNKNOWN ? NAN : (double)ns / 1e6);
}

static inline void put_s(sw_writer *w, const char *key, uint64_t ns)
{
    put_double(w, key, ns == SW_UNKNOWN ? NAN : (double)ns / 1e9);
}

static inline void put_missing(sw_writer *w, const char *key, const char *why)
{
    sw_json_key(w, key);
    sw_json_object_begin(w);
    put_bool(w, "recorded", false);
    put_string(w, "why", why);
    sw_json_object_end(w);
}

#endif
