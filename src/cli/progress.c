/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/text.h"
#include "base/units.h"
#include "report/figure.h"
#include "report/grid.h"
#include "result/view.h"

#define LINE_MAX_BYTES 1024
#define WIDTH_UNKNOWN  80

void progress_init(struct progress *p, FILE *out, bool terminal, bool quiet, unsigned runs) {
    *p = (struct progress){.out = out, .terminal = terminal, .quiet = quiet, .runs = runs};
}

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t len, const char *fmt, ...) {
    size_t at = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + at, len - at, fmt, ap);
    va_end(ap);
}

static void add_figures(const struct session_progress *now, char *buf, size_t len) {
    char iops[40], rate[40], lat[40];
    if (now->iops > 0)
        add(buf, len, "  %s IOPS  %s MiB/s  %s ms", figure(iops, sizeof iops, now->iops, 4),
            figure_mib(rate, sizeof rate, now->bytes_per_second, 4), figure_ms(lat, sizeof lat, now->lat_mean_ns, 3));
    else if (now->bytes_per_second > 0)
        add(buf, len, "  %s MiB/s", figure_mib(rate, sizeof rate, now->bytes_per_second, 4));
    if (now->errors) add(buf, len, "  %" PRIu64 " error%s", now->errors, now->errors == 1 ? "" : "s");
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

/* What matters most comes first: a narrow terminal shows only the beginning. */
void progress_line(const struct session_progress *now, unsigned width, char *buf, size_t len) {
    char label[80], pattern[80], time[40];
    buf[0] = '\0';
    if (now->target) add(buf, len, "%s  ", text_safe(label, sizeof label, now->target, SIZE_MAX));
    if (now->pattern) add(buf, len, "%s  ", text_safe(pattern, sizeof pattern, now->pattern, SIZE_MAX));
    if (now->rounds > 1 && now->round) add(buf, len, "round %u/%u  ", now->round, now->rounds);
    add(buf, len, "%s", session_phase_name(now->phase));
    if (now->total_bytes) {
        add(buf, len, " %u %%", (unsigned)((double)now->done_bytes * 100 / (double)now->total_bytes));
    } else if (now->phase_ns > 0) {
        add(buf, len, " %s", time_left(time, sizeof time, now->phase_ns - now->phase_elapsed_ns));
    }
    if (now->left_ns > 0) add(buf, len, "  left %s", time_left(time, sizeof time, now->left_ns));
    add_figures(now, buf, len);
    grid_cut(buf, width);
}

static unsigned columns(const struct progress *p) {
    struct winsize w;
    if (p->width) return p->width;
    if (ioctl(fileno(p->out), TIOCGWINSZ, &w) || w.ws_col < 2) return WIDTH_UNKNOWN;
    return w.ws_col - 1u; /* a full last column makes some terminals wrap */
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
    char label[80], pattern[80], iops[40], rate[40], lat[40];
    const char *status = view_text(run, "status");
    p->done++;
    if (p->quiet || p->terminal) return;
    fprintf(p->out, "run %u/%u: %s on %s, round %" PRIu64 ": ", p->done, p->runs,
            text_safe(pattern, sizeof pattern, view_text(run, "pattern"), SIZE_MAX),
            text_safe(label, sizeof label, view_text(run, "target"), SIZE_MAX), view_uint(run, "round"));
    if (isnan(view_number(run, "total/iops"))) {
        fprintf(p->out, "%s\n", status ? status : "?");
        return;
    }
    fprintf(p->out, "%s IOPS, %s MiB/s, %s ms%s%s\n", figure(iops, sizeof iops, view_number(run, "total/iops"), 4),
            figure_mib(rate, sizeof rate, view_number(run, "total/bytes_per_second"), 4),
            figure_ms(lat, sizeof lat, view_number(run, "total/lat_ns/mean"), 4),
            status && strcmp(status, "ok") != 0 ? ", " : "", status && strcmp(status, "ok") != 0 ? status : "");
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
