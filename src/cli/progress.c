/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/progress.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/terminal.h"
#include "report/figure.h"
#include "report/grid.h"
#include "result/view.h"

#define LINE_MAX_BYTES 1024
#define WIDTH_UNKNOWN  80
#define FIELDS         12
#define WEIGHT_MAX     12

void progress_init(struct progress *p, FILE *out, bool terminal, bool quiet, unsigned runs) {
    *p = (struct progress){.out = out, .terminal = terminal, .quiet = quiet, .runs = runs};
}

/* Parts of a line: one that does not fit is left out whole. */
struct field {
    char text[240];
    unsigned weight; /* the heaviest have the room first */
};

struct line {
    struct field field[FIELDS];
    unsigned n;
};

__attribute__((format(printf, 3, 4))) static void add(struct line *l, unsigned weight, const char *fmt, ...) {
    struct field *f = &l->field[l->n];
    va_list ap;
    if (l->n == FIELDS) return;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    f->weight = weight;
    if (f->text[0]) l->n++;
}

/* In the order in which they were added, two blanks apart. */
static void join(const struct line *l, unsigned width, char *buf, size_t len) {
    bool shown[FIELDS] = {false};
    unsigned used = 0;
    for (unsigned weight = WEIGHT_MAX; weight > 0; weight--) {
        for (unsigned i = 0; i < l->n; i++) {
            unsigned more = grid_width(l->field[i].text) + (used ? 2 : 0);
            if (l->field[i].weight != weight || used + more > width) continue;
            shown[i] = true;
            used += more;
        }
    }
    buf[0] = '\0';
    for (unsigned i = 0; i < l->n; i++) {
        size_t at = strlen(buf);
        if (shown[i] && at < len) snprintf(buf + at, len - at, "%s%s", at ? "  " : "", l->field[i].text);
    }
}

/* Begun seconds: anything finer would only flicker. */
static const char *time_left(char *buf, size_t len, int64_t ns) {
    int64_t seconds = ns > 0 ? (ns + NS_PER_SEC - 1) / NS_PER_SEC : 0;
    if (!seconds)
        snprintf(buf, len, "0 s");
    else
        units_duration_human(buf, len, (uint64_t)(seconds * NS_PER_SEC));
    return buf;
}

static void add_phase(const struct session_progress *now, struct line *l) {
    char time[40];
    const char *phase = session_phase_name(now->phase);
    if (now->total_bytes)
        add(l, 12, "%s %u %%", phase, (unsigned)((double)now->done_bytes * 100 / (double)now->total_bytes));
    else if (now->phase_ns > 0)
        add(l, 12, "%s %s", phase, time_left(time, sizeof time, now->phase_ns - now->phase_elapsed_ns));
    else
        add(l, 12, "%s", phase);
}

static void add_figures(const struct session_progress *now, struct line *l) {
    char iops[40], rate[40], lat[40];
    if (now->iops > 0) add(l, 7, "%s IOPS", figure(iops, sizeof iops, now->iops, 4));
    if (now->bytes_per_second > 0)
        add(l, 4, "%s MiB/s", figure_mib(rate, sizeof rate, now->bytes_per_second, 4));
    if (now->iops > 0) add(l, 5, "%s ms", figure_ms(lat, sizeof lat, now->lat_mean_ns, 3));
    if (now->errors) add(l, 8, "%" PRIu64 " error%s", now->errors, now->errors == 1 ? "" : "s");
}

void progress_line(const struct session_progress *now, unsigned width, char *buf, size_t len) {
    char label[80], pattern[200], time[40];
    struct line l = {.n = 0};
    if (now->run && now->runs) add(&l, 11, "run %u of %u", now->run, now->runs);
    if (now->target) add(&l, 10, "%s", text_safe(label, sizeof label, now->target, SIZE_MAX));
    if (now->pattern) add(&l, 6, "%s", text_safe(pattern, sizeof pattern, now->pattern, SIZE_MAX));
    if (now->rounds > 1 && now->round) add(&l, 3, "round %u", now->round);
    add_phase(now, &l);
    if (now->left_ns > 0) add(&l, 9, "left %s", time_left(time, sizeof time, now->left_ns));
    add_figures(now, &l);
    join(&l, width, buf, len);
}

static unsigned columns(const struct progress *p) {
    unsigned width = p->width ? p->width : terminal_width(p->out);
    return width ? width : WIDTH_UNKNOWN;
}

static void erase(struct progress *p) {
    if (p->drawn) fputs("\r\033[K", p->out);
    p->drawn = false;
}

void progress_show(struct progress *p, const struct session_progress *now) {
    char line[LINE_MAX_BYTES];
    if (p->quiet || !p->terminal) return;
    progress_line(now, columns(p), line, sizeof line);
    fprintf(p->out, "\r%s\033[K", line);
    fflush(p->out);
    p->drawn = true;
}

void progress_run_done(struct progress *p, const json_t *run) {
    char label[80], pattern[200], iops[40], rate[40], lat[40], line[LINE_MAX_BYTES];
    const char *status = view_text(run, "status");
    bool figures = !isnan(view_number(run, "total/iops"));
    struct line l = {.n = 0};
    p->done++;
    if (p->quiet) return;
    add(&l, 9, "run %u of %u", p->done, p->runs);
    add(&l, 7, "%s", text_safe(label, sizeof label, view_text(run, "target"), SIZE_MAX));
    add(&l, 6, "%s", text_safe(pattern, sizeof pattern, view_text(run, "pattern"), SIZE_MAX));
    add(&l, 2, "round %" PRIu64, view_uint(run, "round"));
    if (figures) {
        add(&l, 5, "%s IOPS", figure(iops, sizeof iops, view_number(run, "total/iops"), 4));
        add(&l, 3, "%s MiB/s", figure_mib(rate, sizeof rate, view_number(run, "total/bytes_per_second"), 4));
        add(&l, 4, "%s ms", figure_ms(lat, sizeof lat, view_number(run, "total/lat_ns/mean"), 4));
    }
    if (!figures || (status && strcmp(status, "ok") != 0)) add(&l, 8, "%s", status ? status : "?");
    join(&l, p->terminal ? columns(p) : UINT_MAX, line, sizeof line);
    erase(p);
    fprintf(p->out, "%s\n", line);
    fflush(p->out);
}

void progress_alarm(struct progress *p, const char *line) {
    erase(p);
    fprintf(p->out, "samedisk: %s\n", line);
}

void progress_say(struct progress *p, const char *line) {
    if (p->quiet) return;
    erase(p);
    fprintf(p->out, "samedisk: %s\n", line);
}

void progress_end(struct progress *p) {
    erase(p);
    fflush(p->out);
}
