/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a pattern file: no crash, and what is accepted makes a stream that stays in its working set and a plan
 * that reads the same again. The first byte chooses command-line keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/set.h"
#include "pattern/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_stream(const struct pattern *p) {
    static struct stream s;
    struct stream_io io;
    struct err err;
    uint64_t size = p->size ? p->size : 64 << 20;
    unsigned workers = (unsigned)p->numjobs;
    if (stream_init(&s, p, p->offset, size, 1, 1, workers - 1, workers, &err) != 0) {
        check(err.msg[0] != '\0');
        return;
    }
    for (int i = 0; i < 50; i++) {
        stream_next(&s, &io);
        check(io.len > 0 && io.len <= pattern_max_io(p));
        check(io.offset >= p->offset && io.offset + io.len <= p->offset + size);
        check(io.offset % pattern_min_align(p) == 0 && io.len % pattern_min_align(p) == 0);
        check(io.op == IO_READ ? pattern_reads(p) : pattern_writes(p));
    }
}

static void check_shown(const struct pattern *p) {
    static char text[PATTERN_SHOWN];
    struct pattern q;
    struct err err;
    char note[400];
    check(pattern_init(&q, "q", &err) == 0);
    for (const struct option_entry *e = pattern_options; e->name; e++)
        if (option_show(e, p, text, sizeof(text))) check(pattern_set(&q, e->name, text, note, sizeof(note), &err) == 0);
    check(pattern_finish(&q, &err) == 0);
    check(q.n_rows == p->n_rows && memcmp(q.row, p->row, p->n_rows * sizeof(p->row[0])) == 0);
    pattern_free(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct pattern_override over[] = {{"bs", "8k"}, {"size", "1g"}, {"numjobs", "3"}, {"row", "4k "
                                                                                                    "read=50"}};
    struct pattern_set set = {0};
    struct err err = {0};
    size_t n_over = size ? data[0] % 8 : 0;
    const char *only = size && data[0] & 16 ? "a*" : NULL;
    if (size) {
        data++;
        size--;
    }
    if (n_over > 4) n_over = 0;
    if (set_read(&set, "fuzz", (const char *)data, size, over, n_over, only, &err) == 0) {
        check(set.n > 0);
        for (size_t i = 0; i < set.n; i++) {
            check_stream(&set.pattern[i]);
            check_shown(&set.pattern[i]);
        }
    } else {
        check(set.n == 0 && err.status == STATUS_USAGE && err.msg[0] != '\0');
    }
    set_free(&set);
    return 0;
}
