/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* What a family of numbers is called, and all that its messages need. */
struct family {
    const char *noun;
    const char *known;    /* units, for people */
    const char *example;
    const char *most;     /* the largest value */
    uint64_t limit;
    const struct unit *units;
    const struct unit *meant; /* what people write that is no unit, as names of a factor; may be NULL */
    const char *(*show)(char *buf, size_t len, uint64_t value);
};

static const struct unit size_units[] = {
    { "", 1 },
    { "k", 1ull << 10 }, { "ki", 1ull << 10 }, { "kb", 1ull << 10 }, { "kib", 1ull << 10 },
    { "m", 1ull << 20 }, { "mi", 1ull << 20 }, { "mb", 1ull << 20 }, { "mib", 1ull << 20 },
    { "g", 1ull << 30 }, { "gi", 1ull << 30 }, { "gb", 1ull << 30 }, { "gib", 1ull << 30 },
    { "t", 1ull << 40 }, { "ti", 1ull << 40 }, { "tb", 1ull << 40 }, { "tib", 1ull << 40 },
    { "p", 1ull << 50 }, { "pi", 1ull << 50 }, { "pb", 1ull << 50 }, { "pib", 1ull << 50 },
    { NULL, 0 }
};

#define NS_PER_MIN (60 * NS_PER_SEC)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY (24 * NS_PER_HOUR)

static const struct unit time_units[] = {
    { "", NS_PER_SEC }, { "s", NS_PER_SEC }, { "m", NS_PER_MIN }, { "h", NS_PER_HOUR }, { "d", NS_PER_DAY },
    { "ms", NS_PER_MS }, { "msec", NS_PER_MS }, { "us", NS_PER_US }, { "usec", NS_PER_US },
    { "ns", 1 }, { "nsec", 1 },
    { NULL, 0 }
};

static const struct unit time_meant[] = {
    { "sec", NS_PER_SEC }, { "secs", NS_PER_SEC }, { "second", NS_PER_SEC }, { "seconds", NS_PER_SEC },
    { "min", NS_PER_MIN }, { "mins", NS_PER_MIN }, { "minute", NS_PER_MIN }, { "minutes", NS_PER_MIN },
    { "hr", NS_PER_HOUR }, { "hrs", NS_PER_HOUR }, { "hour", NS_PER_HOUR }, { "hours", NS_PER_HOUR },
    { "day", NS_PER_DAY }, { "days", NS_PER_DAY },
    { NULL, 0 }
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };

static const char *uint_show(char *buf, size_t len, uint64_t value) {
    snprintf(buf, len, "%" PRIu64, value);
    return buf;
}

static const struct family family_size = {
    "a size", "known: k, m, g, t, p, powers of 1024", "4k", "18446744073709551615", UINT64_MAX, size_units, NULL,
    units_size
};
/* Times meet in sums with clock_now(), which is an int64_t: 292 years are enough. */
static const struct family family_time = {
    "a time", "known: ns, us, ms, s, m, h, d", "30s", "106751d", INT64_MAX, time_units, time_meant, units_time
};
static const struct family family_uint = {
    "a whole number", "plain decimal digits only", "32", "18446744073709551615", UINT64_MAX, no_units, size_units,
    uint_show
};

static uint64_t unit_factor(const struct unit *units, const char *name) {
    for (; units && units->name; units++)
        if (strcasecmp(units->name, name) == 0) return units->factor;
    return 0;
}

static int units_refuse(const struct family *f, const char *text, struct err *err, const char *why, const char *hint) {
    char safe[64];

    return err_set(err, STATUS_USAGE, "'%s' is not %s: %s%s%s%s", text_safe(safe, sizeof(safe), text, strlen(text)),
                   f->noun, why, *hint ? " (" : "", hint, *hint ? ")" : "");
}

/* "(write ...)" for value * factor; nothing where that would be out of range. */
static void units_advise(const struct family *f, unsigned __int128 value, const char *word, char *hint, size_t len) {
    char number[40];

    hint[0] = '\0';
    if (value <= f->limit) snprintf(hint, len, "%s %s", word, f->show(number, sizeof(number), (uint64_t)value));
}

/* `whole` was read, `rest` begins at the '.' or ','. */
static int units_refuse_fraction(const struct family *f, const char *text, unsigned __int128 whole, const char *rest,
                                 struct err *err) {
    uint64_t digits = 0, scale = 1, factor;
    char hint[64] = "write a whole number";

    for (rest++; isdigit((unsigned char)*rest) && scale < NS_PER_SEC; rest++) {
        digits = digits * 10 + (uint64_t)(*rest - '0');
        scale *= 10;
    }
    factor = unit_factor(f->units, rest);
    if (!factor) factor = unit_factor(f->meant, rest);
    if (factor > 1) {
        unsigned __int128 part = (unsigned __int128)digits * factor;
        units_advise(f, whole * factor + part / scale, part % scale ? "nearest below:" : "write", hint, sizeof(hint));
    }
    return units_refuse(f, text, err, "fractions are not allowed", hint);
}

static int units_refuse_unit(const struct family *f, const char *text, unsigned __int128 whole, const char *rest,
                             struct err *err) {
    char why[100], hint[128], advice[64] = "", safe[24];
    uint64_t factor = unit_factor(f->meant, rest);

    text_safe(safe, sizeof(safe), rest, strlen(rest));
    if (!isalpha((unsigned char)*rest)) {
        snprintf(why, sizeof(why), "unexpected '%s' after the number", safe);
        return units_refuse(f, text, err, why, "");
    }
    if (f->units == no_units)
        snprintf(why, sizeof(why), "'%s' after the number; no unit is allowed here", safe);
    else
        snprintf(why, sizeof(why), "unknown unit '%s'", safe);
    if (factor) units_advise(f, whole * factor, "write", advice, sizeof(advice));
    snprintf(hint, sizeof(hint), "%s%s%s", f->known, *advice ? "; " : "", advice);
    return units_refuse(f, text, err, why, hint);
}

static int units_parse(const struct family *f, const char *text, uint64_t *value, struct err *err) {
    unsigned __int128 whole = 0;
    const char *s = text;
    char hint[64];

    snprintf(hint, sizeof(hint), "write for example %s", f->example);
    if (*s == '\0') return units_refuse(f, text, err, "it is empty", hint);
    if (*s == '-' || *s == '+') return units_refuse(f, text, err, "signs are not allowed", hint);
    if (text[strcspn(text, " \t\r\n\v\f")]) return units_refuse(f, text, err, "blanks are not allowed", hint);
    if (*s == '.' || *s == ',') return units_refuse_fraction(f, text, 0, s, err);
    if (!isdigit((unsigned char)*s)) return units_refuse(f, text, err, "it does not begin with a digit", hint);

    snprintf(hint, sizeof(hint), "at most %s", f->most);
    for (; isdigit((unsigned char)*s); s++) {
        whole = whole * 10 + (unsigned)(*s - '0');
        if (whole > f->limit) return units_refuse(f, text, err, "too large", hint);
    }
    if (*s == '.' || *s == ',') return units_refuse_fraction(f, text, whole, s, err);
    uint64_t factor = unit_factor(f->units, s);
    if (!factor) return units_refuse_unit(f, text, whole, s, err);
    if (whole * factor > f->limit) return units_refuse(f, text, err, "too large", hint);
    *value = (uint64_t)(whole * factor);
    return 0;
}

int units_parse_size(const char *text, uint64_t *bytes, struct err *err) {
    return units_parse(&family_size, text, bytes, err);
}

int units_parse_time(const char *text, uint64_t *ns, struct err *err) {
    return units_parse(&family_time, text, ns, err);
}

int units_parse_uint(const char *text, uint64_t *value, struct err *err) {
    return units_parse(&family_uint, text, value, err);
}

int units_parse_bool(const char *text, int *value, struct err *err) {
    static const char *const words[] = { "0", "1", "no", "yes", "false", "true", "off", "on" };
    char safe[64];

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *value = (int)(i & 1);
            return 0;
        }
    }
    return err_set(err, STATUS_USAGE, "'%s' is neither yes nor no (write 1, yes, true, on, or 0, no, false, off)",
                   text_safe(safe, sizeof(safe), text, strlen(text)));
}

/* A unit only where it makes the number easier to read: "4096000000" is as long as it would be in k. */
const char *units_size(char *buf, size_t len, uint64_t bytes) {
    static const char letters[] = "kmgtp";
    const unsigned readable = 100000;

    for (unsigned i = 5; i > 0 && bytes > 0; i--) {
        uint64_t unit = 1ull << (10 * i);

        if (bytes % unit == 0 && bytes / unit < readable) {
            snprintf(buf, len, "%" PRIu64 "%c", bytes / unit, letters[i - 1]);
            return buf;
        }
    }
    return uint_show(buf, len, bytes);
}

const char *units_size_human(char *buf, size_t len, uint64_t bytes) {
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    unsigned i = 0;

    if (bytes < 1000) {
        snprintf(buf, len, "%" PRIu64 " B", bytes);
        return buf;
    }
    for (; value >= 999.5 && i < 6; i++) value /= 1024;
    snprintf(buf, len, "%.*f %s", value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, names[i]);
    return buf;
}

const char *units_time(char *buf, size_t len, uint64_t ns) {
    static const struct unit units[] = {
        { "d", NS_PER_DAY }, { "h", NS_PER_HOUR }, { "m", NS_PER_MIN }, { "s", NS_PER_SEC }, { "ms", NS_PER_MS },
        { "us", NS_PER_US }, { "ns", 1 }
    };
    unsigned i = 0;

    if (ns == 0) i = 3;
    while (ns % units[i].factor != 0) i++;
    snprintf(buf, len, "%" PRIu64 "%s", ns / units[i].factor, units[i].name);
    return buf;
}

static const char *units_pair(char *buf, size_t len, uint64_t value, unsigned per, const char *large,
                              const char *small) {
    if (value % per == 0)
        snprintf(buf, len, "%" PRIu64 " %s", value / per, large);
    else
        snprintf(buf, len, "%" PRIu64 " %s %" PRIu64 " %s", value / per, large, value % per, small);
    return buf;
}

/* Rounded to the smaller of the two units shown, before it is split: never "1 min 60 s". */
const char *units_duration_human(char *buf, size_t len, uint64_t ns) {
    if (ns < 1000) {
        snprintf(buf, len, "%" PRIu64 " ns", ns);
    } else if (ns < 999500) {
        snprintf(buf, len, "%" PRIu64 " us", (ns + 500) / 1000);
    } else if (ns < 999500000) {
        snprintf(buf, len, "%" PRIu64 " ms", (ns + 500000) / 1000000);
    } else {
        uint64_t s = ns / NS_PER_SEC + (ns % NS_PER_SEC >= NS_PER_SEC / 2), min = s / 60 + (s % 60 >= 30),
                 hours = min / 60 + (min % 60 >= 30);

        if (s < 60)
            snprintf(buf, len, "%" PRIu64 " s", s);
        else if (s < 3600)
            units_pair(buf, len, s, 60, "min", "s");
        else if (min < 24 * 60)
            units_pair(buf, len, min, 60, "h", "min");
        else
            units_pair(buf, len, hours, 24, "d", "h");
    }
    return buf;
}
