/* Rather one word too many is hidden than one too few: whoever needs the exact command knows it. */
#include <stdio.h>
#include <string.h>

#include "cli/secrets.h"

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_word(char c)
{
    c = lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
}

/* Whether a name like "--wandb_api-key" announces a secret. */
static bool names_secret(const char *name, size_t length)
{
    static const char *const words[] = {
        "password",   "passwd",     "passphrase", "secret", "apikey",        "accesskey",
        "privatekey", "credential", "authtoken",  "bearer", "authorization", "cookie"};
    static const char *const endings[] = {"token", "key", "pwd", "auth", "pass"};
    static const char *const harmless[] = {
        "padtoken", "eostoken", "bostoken", "unktoken", "masktoken", "stoptoken",
        "sortkey",  "groupkey", "labelkey", "imagekey", "textkey",   "keypass"};
    char plain[128];
    size_t used = 0;
    for (size_t i = 0; i < length && used < sizeof plain - 1; i++) {
        if (name[i] != '-' && name[i] != '_' && name[i] != '.') {
            plain[used++] = lower(name[i]);
        }
    }
    plain[used] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(plain, words[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        size_t end = strlen(harmless[i]);
        if (used >= end && strcmp(plain + used - end, harmless[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t end = strlen(endings[i]);
        if (used >= end && strcmp(plain + used - end, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Length of a key that its beginning gives away, or 0. */
static size_t known_key(const char *at)
{
    static const struct {
        const char *prefix;
        size_t least;
    } shapes[] = {{"AKIA", 20},  {"ASIA", 20},        {"ghp_", 30},  {"gho_", 30},
                  {"ghs_", 30},  {"hf_", 20},         {"sk-", 20},   {"xoxb-", 20},
                  {"xoxp-", 20}, {"glpat-", 20},      {"AIza", 35},  {"eyJ", 40},
                  {"npm_", 30},  {"github_pat_", 40}, {"nvapi-", 30}};
    size_t length = 0;
    while (is_word(at[length])) {
        length++;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (length >= shapes[i].least &&
            strncmp(at, shapes[i].prefix, strlen(shapes[i].prefix)) == 0) {
            return length;
        }
    }
    return 0;
}

/* Length of "user:password@" after "://", or 0. */
static size_t url_login(const char *at)
{
    size_t length = strcspn(at, "/?# \t\"'");
    const char *end = memrchr(at, '@', length);
    return end ? (size_t)(end - at) + 1 : 0;
}

static void append(char *out, size_t size, size_t *used, const char *text, size_t length)
{
    size_t room = size - 1 - *used;
    length = length < room ? length : room;
    memcpy(out + *used, text, length);
    *used += length;
    out[*used] = '\0';
}

void secrets_redact(char *out, size_t size, const char *argument, bool *hide_next)
{
    size_t used = 0;
    out[0] = '\0';
    bool hide = *hide_next && argument[0] != '-';
    *hide_next = false;
    if (hide) {
        append(out, size, &used, "***", 3);
        return;
    }
    const char *at = argument;
    while (*at) {
        size_t login = strncmp(at, "://", 3) == 0 ? url_login(at + 3) : 0;
        size_t key = at == argument || !is_word(at[-1]) ? known_key(at) : 0;
        if (login) {
            append(out, size, &used, "://***@", 7);
            at += 3 + login;
        } else if (key) {
            append(out, size, &used, "***", 3);
            at += key;
        } else if (is_word(*at)) {
            size_t word = 0;
            while (is_word(at[word])) {
                word++;
            }
            bool secret = names_secret(at, word);
            size_t sign = strspn(at + word, "=:");
            append(out, size, &used, at, word + (secret ? sign : 0));
            if (secret && sign && at[word + sign]) {
                append(out, size, &used, "***", 3);
                return; /* a password may hold anything: all of the rest is hidden */
            }
            *hide_next = secret && at == argument && *argument == '-' && !at[word];
            at += word + (secret ? sign : 0);
        } else {
            append(out, size, &used, at, 1);
            at++;
        }
    }
}
