/* Hiding what looks like a secret. It rather hides too much: whoever needs the exact text knows it. */
#include <string.h>

#include <stepwatch/redact.h>

#include "base/compiler.h"

#define HIDDEN "***"
#define ELLIPSIS "\xE2\x80\xA6"

/* Text under construction. */
struct text {
    char *out;
    size_t used;
    size_t size; /* one byte of it is for the NUL */
    bool cut;    /* something did not fit; nothing follows */
};

static void put(struct text *text, const char *bytes, size_t length)
{
    size_t room = text->size - text->used - 1;
    text->cut |= length > room;
    length = length > room ? room : length;
    memcpy(text->out + text->used, bytes, length);
    text->used += length;
    text->out[text->used] = '\0';
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        c = (char)(c - 'A' + 'a');
    }
    return c;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '_' || c == '-' ||
           c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}
#define AMONG(word, ...)                                                                 \
    among((word), (const char *const[]){__VA_ARGS__},                                    \
          SW__COUNTOF(((const char *const[]){__VA_ARGS__})))

static bool ends_with(const char *word, const char *end)
{
    size_t length = strlen(word);
    return length >= strlen(end) && strcmp(word + length - strlen(end), end) == 0;
}

/* How secret the value behind a name may be. */
enum secrecy {
    OPEN,
    SUSPECT, /* secret if it looks random */
    SECRET
};

/* Judges one word of a name by itself and the word before it. */
static enum secrecy judge_word(const char *word, const char *before, bool last)
{
    if (ends_with(word, "password") || ends_with(word, "passwd") ||
        ends_with(word, "secret") || ends_with(word, "apikey") ||
        AMONG(word, "passphrase", "secrets", "credential", "credentials", "authorization",
              "cookie", "privatekey", "accesskey")) {
        return SECRET;
    }
    if (strcmp(word, "key") == 0 &&
        AMONG(before, "api", "access", "secret", "private", "auth", "account",
              "encryption", "signing", "service", "master", "shared", "license", "ssh")) {
        return SECRET;
    }
    if (!last) {
        return OPEN;
    }
    /* Those of a tokenizer are no secret. */
    if (ends_with(word, "token")) {
        return AMONG(before, "pad", "eos", "bos", "unk", "mask", "cls", "sep", "start",
                     "end", "stop", "special", "per", "image", "prompt", "decoder")
                   ? OPEN
                   : SECRET;
    }
    if (strcmp(word, "pwd") == 0 ||
        (strcmp(word, "pass") == 0 && AMONG(before, "", "db", "user", "admin", "root",
                                            "login", "smtp", "proxy", "ssh"))) {
        return SECRET;
    }
    return AMONG(word, "key", "auth", "sig", "signature", "session", "pat") ? SUSPECT
                                                                            : OPEN;
}

/* Judges a name by its words: "--wandb.api_key" and "apiKey" both hold "api" and "key". */
static enum secrecy judge_name(const char *name, size_t length)
{
    char words[2][64] = {"", ""};
    char *word = words[0];
    char *before = words[1];
    size_t used = 0;
    enum secrecy worst = OPEN;
    for (size_t i = 0; i <= length; i++) {
        bool gap = i == length || name[i] == '_' || name[i] == '-' || name[i] == '.';
        bool hump = !gap && i > 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
        if ((gap || hump) && used > 0) {
            word[used] = '\0';
            enum secrecy one = judge_word(word, before, i == length);
            worst = one > worst ? one : worst;
            char *swap = before;
            before = word;
            word = swap;
            used = 0;
        }
        if (!gap && used + 1 < sizeof words[0]) {
            word[used++] = lower(name[i]);
        }
    }
    return worst;
}

/* Long, and of letters and digits mixed: more likely drawn than chosen. */
static bool looks_random(const char *value, size_t length)
{
    size_t digits = 0;
    size_t letters = 0;
    for (size_t i = 0; i < length; i++) {
        if (is_digit(value[i])) {
            digits++;
        } else if (is_word(value[i])) {
            letters++;
        } else if (!strchr("+/=~", value[i])) {
            return false;
        }
    }
    return length >= 16 && digits >= 3 && letters >= 3;
}

static bool is_secret(enum secrecy secrecy, const char *value, size_t length)
{
    return length > 0 &&
           (secrecy == SECRET || (secrecy == SUSPECT && looks_random(value, length)));
}

/* Length of a key that gives itself away by its beginning, whatever it stands behind, or 0. */
static size_t known_key(const char *at, size_t left)
{
    static const struct {
        const char *prefix;
        size_t least; /* of the whole key */
    } shapes[] = {
        {"AKIA", 20},  {"ASIA", 20},        {"ghp_", 30},    {"gho_", 30}, {"ghu_", 30},
        {"ghs_", 30},  {"github_pat_", 40}, {"hf_", 20},     {"sk-", 20},  {"xoxb-", 20},
        {"xoxp-", 20}, {"glpat-", 20},      {"AIza", 35},    {"eyJ", 40},  {"npm_", 30},
        {"pypi-", 40}, {"nvapi-", 30},      {"dop_v1_", 40},
    };
    size_t length = 0;
    while (length < left && is_word(at[length])) {
        length++;
    }
    for (size_t i = 0; i < SW__COUNTOF(shapes); i++) {
        size_t prefix = strlen(shapes[i].prefix);
        if (length >= shapes[i].least && memcmp(at, shapes[i].prefix, prefix) == 0 &&
            looks_random(at, length)) {
            return length;
        }
    }
    return 0;
}

/* The user part of a URL whose "://" ends before `at`, '@' included, when it holds a password or
 * looks like a key; else 0. */
static size_t url_login(const char *at, size_t left)
{
    size_t login = 0;
    for (size_t i = 0; i < left && !is_blank(at[i]) && !strchr("/?#\"'<>", at[i]); i++) {
        login = at[i] == '@' ? i + 1 : login;
    }
    bool hidden = login > 1 && (memchr(at, ':', login) || looks_random(at, login - 1));
    return hidden ? login : 0;
}

/* Where the value behind the name at text[from..to) lies, looking past quotes, blanks and one '=' or
 * ':'. Behind a flag ("--token x") a blank is enough. False when nothing is assigned. */
static bool find_value(const char *text, size_t length, size_t from, size_t to,
                       bool whole, size_t *begin, size_t *end)
{
    size_t at = to;
    at += at < length && (text[at] == '"' || text[at] == '\'');
    while (at < length && is_blank(text[at])) {
        at++;
    }
    bool sign = at < length && (text[at] == '=' || text[at] == ':');
    if (!sign && !(text[from] == '-' && at > to && at < length && text[at] != '-')) {
        return false;
    }
    whole = whole && sign && at == to && text[at] == '=';
    at += sign;
    while (at < length && is_blank(text[at])) {
        at++;
    }
    char quote = '\0';
    if (at < length && (text[at] == '"' || text[at] == '\'')) {
        quote = text[at++];
    }
    /* "Authorization: Bearer x": the secret is the second word. */
    size_t scheme = at;
    while (scheme < length && is_word(text[scheme])) {
        scheme++;
    }
    char word[8] = "";
    for (size_t i = 0; i < scheme - at && scheme - at < sizeof word; i++) {
        word[i] = lower(text[at + i]);
    }
    if (AMONG(word, "bearer", "basic", "token") && scheme < length &&
        text[scheme] == ' ') {
        at = scheme + 1;
    }
    *begin = at;
    if (whole && !quote) {
        *end = length;
        return true;
    }
    while (at < length &&
           (quote ? text[at] != quote
                  : !is_blank(text[at]) && !strchr(",;&\"')}]", text[at]))) {
        at++;
    }
    *end = at;
    return true;
}

/* Appends `text`, with every value that looks secret hidden. */
static void put_redacted(struct text *out, const char *text, size_t length)
{
    size_t head = 0;
    while (head < length && strchr("-+~", text[head])) {
        head++;
    }
    for (size_t i = 0; i < length;) {
        if (!is_word(text[i])) {
            size_t login = length - i > 3 && memcmp(text + i, "://", 3) == 0
                               ? url_login(text + i + 3, length - i - 3)
                               : 0;
            size_t plain = login ? 3 : 1;
            put(out, text + i, plain);
            put(out, HIDDEN "@", login ? strlen(HIDDEN "@") : 0);
            i += plain + login;
            continue;
        }
        size_t key = known_key(text + i, length - i);
        if (key) {
            put(out, HIDDEN, strlen(HIDDEN));
            i += key;
            continue;
        }
        size_t to = i;
        while (to < length && is_word(text[to])) {
            to++;
        }
        size_t begin = to;
        size_t end = to;
        enum secrecy secrecy = judge_name(text + i, to - i);
        if (secrecy != OPEN && find_value(text, length, i, to, i <= head, &begin, &end) &&
            is_secret(secrecy, text + begin, end - begin)) {
            put(out, text + i, begin - i);
            put(out, HIDDEN, strlen(HIDDEN));
            i = end;
        } else {
            put(out, text + i, to - i);
            i = to;
        }
    }
}

/* Ends a text, with an ellipsis where something did not fit. */
static void finish(struct text *text)
{
    if (text->cut) {
        memcpy(text->out + text->used, ELLIPSIS, sizeof ELLIPSIS);
    }
}

void sw_redact_text(char *out, size_t size, const char *text, size_t length)
{
    struct text shown = {.out = out, .size = size - strlen(ELLIPSIS)};
    out[0] = '\0';
    put_redacted(&shown, text, length);
    finish(&shown);
}

void sw_copy_text(char *out, size_t size, const char *text, size_t length)
{
    struct text shown = {.out = out, .size = size - strlen(ELLIPSIS)};
    out[0] = '\0';
    put(&shown, text, length);
    finish(&shown);
}

void sw_redact_argument(char *out, size_t size, const char *argument, size_t length,
                        int *flag)
{
    enum secrecy announced = *flag == SECRET ? SECRET : *flag == SUSPECT ? SUSPECT : OPEN;
    if (argument[0] != '-' && is_secret(announced, argument, length)) {
        sw_copy_text(out, size, HIDDEN, strlen(HIDDEN));
    } else {
        sw_redact_text(out, size, argument, length);
    }
    bool is_flag = length > 0 && argument[0] == '-' && !memchr(argument, '=', length);
    *flag = is_flag ? (int)judge_name(argument, length) : OPEN;
}
