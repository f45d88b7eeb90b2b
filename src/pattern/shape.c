/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys that say which I/Os there are: rw, bs, bssplit, row, the two mixes, blockalign. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "pattern/keys.h"
#include "pattern/pattern.h"

static const char *const shape_rw_names[] = {"read", "write", "randread", "randwrite", "rw", "randrw", NULL};

/* A piece of a value as a string of its own: no number or word that means anything is longer than 63 bytes. */
static int shape_word(const char *at, size_t n, char word[64], struct err *err) {
    if (n >= 64) {
        char safe[64];
        return err_set(err, STATUS_USAGE, "'%s' is too long to be a number or a word",
                       text_safe(safe, sizeof(safe), at, n));
    }
    memcpy(word, at, n);
    word[n] = '\0';
    return 0;
}

static int shape_block(const char *word, uint32_t *size, struct err *err) {
    uint64_t bytes;
    if (units_parse_size(word, &bytes, err) != 0) return -1;
    if (bytes == 0) return err_set(err, STATUS_USAGE, "a block of 0 bytes moves nothing; 4k is usual");
    if (bytes > KEYS_BLOCK_MAX)
        return err_set(err, STATUS_USAGE, "a block of %s is larger than the largest, 64m", word);
    if (bytes % PATTERN_SECTOR != 0)
        return err_set(err, STATUS_USAGE, "a block of %llu bytes is not a multiple of 512 (one sector)",
                       (unsigned long long)bytes);
    *size = (uint32_t)bytes;
    return 0;
}

static int shape_percent(const char *value, uint64_t *percent, struct err *err) {
    if (units_parse_uint(value, percent, err) != 0) return -1;
    if (*percent > 100) return err_set(err, STATUS_USAGE, "%s is more than 100 percent", value);
    return 0;
}

int shape_parse_rw(const char *value, void *field, void *conf, struct err *err) {
    (void)conf;
    char safe[64];
    if (strcmp(value, "readwrite") == 0) value = "rw";
    for (int i = 0; shape_rw_names[i]; i++) {
        if (strcmp(value, shape_rw_names[i]) != 0) continue;
        *(int *)field = i;
        return 0;
    }
    text_safe(safe, sizeof(safe), value, strlen(value));
    if (strchr(value, ':'))
        return err_set(err, STATUS_USAGE, "'%s': fio's number after the colon (a jump only every N I/Os) does not "
                       "exist here; percentage_random= mixes random and sequential I/Os", safe);
    if (strstr(value, "trim"))
        return err_set(err, STATUS_USAGE, "'%s': there are no trims here, only reads and writes", safe);
    const char *near = text_nearest(value, shape_rw_names);
    if (near && strchr(near, 'w') && !strchr(value, 'w')) near = NULL; /* nobody is talked into writing */
    return err_set(err, STATUS_USAGE, "'%s' is not one of read, write, randread, randwrite, rw, randrw%s%s%s", safe,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int shape_parse_bs(const char *value, void *field, void *conf, struct err *err) {
    struct pattern *p = conf;
    char word[64];
    uint32_t size[2];
    const char *comma = strchr(value, ',');
    char safe[64];
    if (comma && (comma == value || !comma[1] || strchr(comma + 1, ',')))
        return err_set(err, STATUS_USAGE, "'%s' names sizes for only some directions, or for trims; write one size, or "
                       "READ,WRITE such as 4k,8k", text_safe(safe, sizeof(safe), value, strlen(value)));
    if (shape_word(value, comma ? (size_t)(comma - value) : strlen(value), word, err) != 0) return -1;
    if (shape_block(word, &size[0], err) != 0) return -1;
    if (comma && (shape_word(comma + 1, strlen(comma + 1), word, err) != 0 || shape_block(word, &size[1], err) != 0))
        return -1;
    *(uint64_t *)field = size[0];
    p->n_read_split = p->n_write_split = comma ? 1 : 0;
    if (comma) {
        p->read_split[0] = (struct pattern_split){size[0], 100};
        p->write_split[0] = (struct pattern_split){size[1], 100};
    }
    return 0;
}

/* One entry SIZE[/PERCENT] of a list; *blank when it has no percentage. */
static int shape_split_entry(const char *at, size_t n, struct pattern_split *out, bool *blank, struct err *err) {
    char word[64];
    uint64_t percent = 0;
    const char *slash = memchr(at, '/', n);
    if (n == 0) return err_set(err, STATUS_USAGE, "an empty entry; a list is such as 4k/60:8k/40");
    if (shape_word(at, slash ? (size_t)(slash - at) : n, word, err) != 0) return -1;
    if (shape_block(word, &out->size, err) != 0) return -1;
    *blank = !slash || slash + 1 == at + n;
    if (!*blank) {
        if (shape_word(slash + 1, (size_t)(at + n - slash - 1), word, err) != 0) return -1;
        if (shape_percent(word, &percent, err) != 0) return -1;
    }
    out->share = (uint32_t)percent;
    return 0;
}

/* Blank percentages share what the others leave; what does not divide goes to the first of them. */
static int shape_split_blanks(struct pattern_split *list, const bool *blank, unsigned n, struct err *err) {
    unsigned sum = 0, blanks = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += list[i].share;
        blanks += blank[i];
    }
    if (blanks ? sum >= 100 : sum != 100)
        return err_set(err, STATUS_USAGE, "the percentages come to %u%s, not to 100", sum,
                       blanks ? " and leave nothing for the blank ones" : "");
    for (unsigned i = 0, left = 100 - sum; i < n; i++) {
        if (!blank[i]) continue;
        list[i].share = (left + blanks - 1) / blanks;
        left -= list[i].share;
        blanks--;
    }
    return 0;
}

static int shape_split_list(const char *at, size_t n, struct pattern_split *list, unsigned *count, struct err *err) {
    bool blank[PATTERN_ROWS];
    unsigned k = 0;
    for (const char *end = at + n;; k++) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        if (k == PATTERN_ROWS) return err_set(err, STATUS_USAGE, "more than %d sizes in a list", PATTERN_ROWS);
        if (shape_split_entry(at, (size_t)((colon ? colon : end) - at), &list[k], &blank[k], err) != 0) return -1;
        if (!colon) break;
        at = colon + 1;
    }
    *count = k + 1;
    return shape_split_blanks(list, blank, *count, err);
}

int shape_parse_bssplit(const char *value, void *field, void *conf, struct err *err) {
    (void)field;
    struct pattern *p = conf;
    struct pattern_split list[2][PATTERN_ROWS];
    unsigned n[2];
    const char *comma = strchr(value, ',');
    if (comma && strchr(comma + 1, ','))
        return err_set(err, STATUS_USAGE, "a third list is fio's for trims, and there are no trims here");
    if (shape_split_list(value, comma ? (size_t)(comma - value) : strlen(value), list[0], &n[0], err) != 0) return -1;
    if (comma && shape_split_list(comma + 1, strlen(comma + 1), list[1], &n[1], err) != 0) return -1;
    if (!comma) {
        memcpy(list[1], list[0], n[0] * sizeof(list[0][0]));
        n[1] = n[0];
    }
    memcpy(p->read_split, list[0], n[0] * sizeof(list[0][0]));
    memcpy(p->write_split, list[1], n[1] * sizeof(list[1][0]));
    p->n_read_split = n[0];
    p->n_write_split = n[1];
    return 0;
}

/* WORD=NUMBER of a row. `seen` refuses a second one. */
static int shape_row_item(const char *word, struct pattern_row *row, unsigned *seen, struct err *err) {
    static const char *const names[] = {"share", "read", "random", "align"};
    const char *equals = strchr(word, '=');
    uint64_t number;
    for (unsigned i = 0; equals && i < 4; i++) {
        if (strlen(names[i]) != (size_t)(equals - word) || strncmp(word, names[i], strlen(names[i])) != 0) continue;
        if (*seen & 1u << i) return err_set(err, STATUS_USAGE, "%s= stands twice in one row", names[i]);
        *seen |= 1u << i;
        if (i == 3) {
            if (shape_block(equals + 1, &row->align, err) != 0) return err_prefix(err, "align");
            return 0;
        }
        if (shape_percent(equals + 1, &number, err) != 0) return err_prefix(err, "%s", names[i]);
        if (i == 0) row->share = (uint32_t)number * (PATTERN_SHARES / 100);
        if (i == 1) row->read = (uint32_t)number;
        if (i == 2) row->random = (uint32_t)number;
        return 0;
    }
    char safe[64];
    return err_set(err, STATUS_USAGE, "'%s' in a row is none of share=PERCENT, read=PERCENT, random=PERCENT, "
                   "align=SIZE",
                   text_safe(safe, sizeof(safe), word, strlen(word)));
}

static int shape_row(const char *at, const char *end, struct pattern_row *row, struct err *err) {
    unsigned seen = 0;
    bool first = true;
    *row = (struct pattern_row){.share = PATTERN_SHARES, .read = 100};
    for (;;) {
        char word[64];
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        if (at == end) break;
        const char *start = at;
        while (at < end && *at != ' ' && *at != '\t') at++;
        if (shape_word(start, (size_t)(at - start), word, err) != 0) return -1;
        if (first ? shape_block(word, &row->size, err) != 0 : shape_row_item(word, row, &seen, err) != 0) return -1;
        first = false;
    }
    if (first) return err_set(err, STATUS_USAGE, "an empty row; it begins with its block size: 8k share=60 read=80");
    return 0;
}

int shape_parse_row(const char *value, void *field, void *conf, struct err *err) {
    (void)field;
    struct pattern *p = conf;
    struct pattern_row rows[PATTERN_ROWS];
    unsigned have = p->rows_inherited ? 0 : p->n_key_rows, n = have;
    for (;;) {
        const char *comma = strchr(value, ',');
        if (n == PATTERN_ROWS) return err_set(err, STATUS_USAGE, "more than %d rows in one pattern", PATTERN_ROWS);
        if (shape_row(value, comma ? comma : value + strlen(value), &rows[n++], err) != 0) return -1;
        if (!comma) break;
        value = comma + 1;
    }
    memcpy(p->key_rows + have, rows + have, (n - have) * sizeof(rows[0]));
    p->n_key_rows = n;
    p->rows_inherited = false;
    return 0;
}

int shape_parse_percent(const char *value, void *field, void *conf, struct err *err) {
    (void)conf;
    uint64_t percent;
    if (shape_percent(value, &percent, err) != 0) return -1;
    *(uint64_t *)field = percent;
    return 0;
}

int shape_parse_rwmixwrite(const char *value, void *field, void *conf, struct err *err) {
    uint64_t percent;
    if (shape_parse_percent(value, &percent, conf, err) != 0) return -1;
    *(uint64_t *)field = 100 - percent;
    return 0;
}

int shape_parse_blockalign(const char *value, void *field, void *conf, struct err *err) {
    (void)conf;
    uint32_t align = 0;
    if (strcmp(value, "0") != 0 && shape_block(value, &align, err) != 0) return -1;
    *(uint64_t *)field = align;
    return 0;
}

/* ---- the effective values: rows hide what they replaced, and a list that was cut would be another list ---- */

int shape_show_rw(const void *field, const void *conf, char *buf, size_t len) {
    if (((const struct pattern *)conf)->n_key_rows) return 0;
    return snprintf(buf, len, "%s", shape_rw_names[*(const int *)field]);
}

int shape_show_bs(const void *field, const void *conf, char *buf, size_t len) {
    const struct pattern *p = conf;
    if (p->n_key_rows || p->n_read_split) return 0;
    return (int)strlen(units_size(buf, len, *(const uint64_t *)field));
}

static size_t shape_show_list(const struct pattern_split *list, unsigned n, char *buf, size_t len, size_t at) {
    for (unsigned i = 0; i < n && at < len; i++) {
        char size[32];
        at += (size_t)snprintf(buf + at, len - at, "%s%s/%u", i ? ":" : "",
                               units_size(size, sizeof(size), list[i].size), list[i].share);
    }
    return at;
}

int shape_show_bssplit(const void *field, const void *conf, char *buf, size_t len) {
    (void)field;
    const struct pattern *p = conf;
    if (p->n_key_rows || !p->n_read_split) return 0;
    size_t at = shape_show_list(p->read_split, p->n_read_split, buf, len, 0);
    bool same = p->n_read_split == p->n_write_split &&
                memcmp(p->read_split, p->write_split, p->n_read_split * sizeof(p->read_split[0])) == 0;
    if (!same && at < len) {
        at += (size_t)snprintf(buf + at, len - at, ",");
        at = shape_show_list(p->write_split, p->n_write_split, buf, len, at);
    }
    return at < len ? (int)at : 0;
}

int shape_show_row(const void *field, const void *conf, char *buf, size_t len) {
    (void)field;
    const struct pattern *p = conf;
    size_t at = 0;
    for (unsigned i = 0; i < p->n_key_rows && at < len; i++) {
        const struct pattern_row *r = &p->key_rows[i];
        char size[32], align[32];
        at += (size_t)snprintf(buf + at, len - at, "%s%s share=%u read=%u random=%u align=%s", i ? ", " : "",
                               units_size(size, sizeof(size), r->size), r->share / (PATTERN_SHARES / 100), r->read,
                               r->random, units_size(align, sizeof(align), r->align ? r->align : r->size));
    }
    return at < len ? (int)at : 0;
}

int shape_show_rwmixread(const void *field, const void *conf, char *buf, size_t len) {
    const struct pattern *p = conf;
    if (p->n_key_rows || (p->rw != RW_RW && p->rw != RW_RANDRW)) return 0;
    return snprintf(buf, len, "%llu", (unsigned long long)*(const uint64_t *)field);
}

int shape_show_percentage_random(const void *field, const void *conf, char *buf, size_t len) {
    if (((const struct pattern *)conf)->n_key_rows) return 0;
    if (keys_given(conf, "percentage_random"))
        return snprintf(buf, len, "%llu", (unsigned long long)*(const uint64_t *)field);
    int rw = ((const struct pattern *)conf)->rw;
    return snprintf(buf, len, "%d", rw == RW_RANDREAD || rw == RW_RANDWRITE || rw == RW_RANDRW ? 100 : 0);
}

int shape_show_blockalign(const void *field, const void *conf, char *buf, size_t len) {
    if (((const struct pattern *)conf)->n_key_rows || *(const uint64_t *)field == 0) return 0;
    return (int)strlen(units_size(buf, len, *(const uint64_t *)field));
}
