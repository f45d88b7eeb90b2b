/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A long cable between two network namespaces: every packet arrives a set time after it was sent.
 *
 *   delayline [OPTION ...] NAME NETNS NETNS
 *   e.g.  delayline --rtt 5ms --loss 1% link1 /proc/42/ns/net /proc/43/ns/net
 *
 *   --rtt TIME      there and back together, half of it each way (us, ms, s); default 0
 *   --loss PERCENT  so many of the frames are dropped, each way; which ones follows from the seed and their number
 *   --seed N        default 1
 *   --rate N        bits a second each way, counted as on Ethernet with preamble, checksum and gap; 0: no limit
 *   --queue TIME    with a rate: what would wait longer for the line is dropped; default 20ms
 *   --store SIZE    bytes on the way, each way; what finds it full is dropped; default 8 MiB + 1 GB/s x one way
 *   --spin          does not sleep in the last tens of microseconds: more exact, and more CPU
 *
 * Makes a TUN interface NAME in each of the two namespaces, without addresses, and prints "ready"; they go when it
 * ends. SIGUSR1 prints what has passed; SIGTERM too, and ends. Order is kept. Without a loss, packets are what the
 * sender's TCP hands to its interface, up to 64 KiB (GSO): nothing is segmented, and the receiver sees what a NIC with
 * receive offload shows it. With a loss each packet is one frame of at most 1500 bytes, as that is what gets lost. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD        ((uint32_t)sizeof(struct virtio_net_hdr))
#define PACKET_MAX  (HEAD + 65536 + 256)
#define BATCH       64     /* packets of one direction before the other has its turn */
#define FRAME_EXTRA 38     /* Ethernet: header 14, checksum 4, preamble 8, gap 12 */
#define WAKE_MAX    500000 /* ns; a longer wake-up is an accident, and not to be reckoned with */
#define SPIN_MARGIN 40000  /* ns, --spin */
#define TX_QUEUE    16384  /* packets that wait in the kernel to be read */
#define NO_DUE      INT64_MAX

struct packet { /* in the store, before its bytes */
    int64_t due;
    uint32_t len; /* 0: nothing more before the end of the store */
    uint32_t frames;
};

struct passed {
    uint64_t packets, frames, bytes, lost, queue_full, store_full, refused;
    int64_t late_sum, late_max;
    size_t held_max;
};

struct way { /* one direction */
    const char *name;
    int from, to;
    char *store;
    size_t head, tail, used; /* used includes what a wrap leaves out */
    int64_t free_at;         /* the line has sent all that it took so far */
    uint64_t state;          /* of the random numbers */
    struct passed passed;
};

struct line {
    int64_t delay, queue, wake; /* wake: how late this machine returns from a sleep, tracked */
    double loss, rate;
    size_t store;
    uint64_t seed;
    bool spin, realtime;
    const char *name;
    int signals;
    struct way way[2];
};

static void die(const char *what, const char *why) {
    fprintf(stderr, "delayline: %s: %s\n", what, why);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* ---- the store: a ring of packets, each in one piece ---- */

static size_t packet_room(uint32_t len) {
    return (sizeof(struct packet) + len + 15) & ~(size_t)15;
}

/* Where the next packet of the largest size can be put, or NULL. */
static struct packet *store_tail(struct line *l, struct way *w) {
    size_t need = packet_room(PACKET_MAX);
    if (w->used == 0) w->head = w->tail = 0;
    if (w->tail + need > l->store) {
        size_t left = l->store - w->tail;
        if (w->head > w->tail || w->head < need) return NULL;
        if (left >= sizeof(struct packet)) ((struct packet *)(w->store + w->tail))->len = 0;
        w->used += left;
        w->tail = 0;
    }
    if (w->used && w->head >= w->tail && w->head - w->tail < need) return NULL;
    return (struct packet *)(w->store + w->tail);
}

static void store_put(struct way *w, uint32_t len) {
    w->tail += packet_room(len);
    w->used += packet_room(len);
    if (w->used > w->passed.held_max) w->passed.held_max = w->used;
}

static struct packet *store_head(struct line *l, struct way *w) {
    if (w->used == 0) return NULL;
    struct packet *p = (struct packet *)(w->store + w->head);
    if (l->store - w->head >= sizeof *p && p->len) return p;
    w->used -= l->store - w->head;
    w->head = 0;
    return w->used ? (struct packet *)w->store : NULL;
}

static void store_drop(struct way *w, const struct packet *p) {
    size_t room = packet_room(p->len);
    w->head += room;
    w->used -= room;
}

/* ---- one packet ---- */

/* How many frames it is on the wire, and their bytes: each segment repeats the headers. */
static uint32_t on_the_wire(const struct virtio_net_hdr *v, uint32_t len, uint64_t *bytes) {
    uint32_t ip = len - HEAD, frames = 1;
    if (v->gso_type != VIRTIO_NET_HDR_GSO_NONE && v->gso_size && v->hdr_len < ip)
        frames = (ip - v->hdr_len + v->gso_size - 1) / v->gso_size;
    *bytes = ip + (uint64_t)(frames - 1) * v->hdr_len + (uint64_t)frames * FRAME_EXTRA;
    return frames;
}

/* splitmix64: one number for each packet, whatever became of those before. */
static bool is_lost(const struct line *l, struct way *w) {
    if (l->loss <= 0) return false;
    uint64_t z = w->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53 < l->loss;
}

/* A packet that came at `at` goes on its way, or not. */
static void take(struct line *l, struct way *w, struct packet *p, uint32_t len, int64_t at) {
    uint64_t bytes;
    struct virtio_net_hdr v;
    memcpy(&v, p + 1, sizeof v);
    uint32_t frames = on_the_wire(&v, len, &bytes);
    int64_t start = max64(at, w->free_at), end = start;
    if (is_lost(l, w)) {
        w->passed.lost++;
        return;
    }
    if (l->rate > 0) {
        if (start - at > l->queue) {
            w->passed.queue_full += frames;
            return;
        }
        end += (int64_t)((double)bytes * 8e9 / l->rate);
    }
    w->free_at = end; /* also keeps the order, as `at` is corrected by a guess */
    p->due = end + l->delay;
    p->len = len;
    p->frames = frames;
    store_put(w, len);
}

/* True: something was there. `early`: by so much the first may have come before now, at most at `since`. */
static bool receive(struct line *l, struct way *w, int64_t early, int64_t since) {
    char spare[16];
    for (unsigned i = 0; i < BATCH; i++) {
        struct packet *p = store_tail(l, w);
        int64_t at = max64(now_ns() - early, since);
        ssize_t got = p ? read(w->from, p + 1, PACKET_MAX) : read(w->from, spare, sizeof spare);
        if (got <= 0) return i > 0;
        if (p && got > (ssize_t)HEAD)
            take(l, w, p, (uint32_t)got, at);
        else
            w->passed.store_full++;
    }
    return true;
}

/* Writes what is due, and says when the next one is. */
static int64_t deliver(struct line *l, struct way *w, int64_t early) {
    struct packet *p;
    for (unsigned i = 0; (p = store_head(l, w)) != NULL && i < BATCH; i++) {
        int64_t now = now_ns();
        if (p->due > now + early) break;
        if (write(w->to, p + 1, p->len) != (ssize_t)p->len) w->passed.refused += p->frames;
        int64_t late = now - p->due;
        w->passed.late_sum += late;
        if (late > w->passed.late_max) w->passed.late_max = late;
        w->passed.packets++;
        w->passed.frames += p->frames;
        w->passed.bytes += p->len - HEAD;
        store_drop(w, p);
    }
    p = store_head(l, w);
    return p ? p->due : NO_DUE;
}

/* ---- the loop ---- */

static void show(const struct line *l) {
    for (unsigned i = 0; i < 2; i++) {
        const struct passed *p = &l->way[i].passed;
        printf("%s %s: packets %llu frames %llu bytes %llu lost %llu queue_full %llu store_full %llu refused %llu "
               "late_mean_us %.1f late_max_us %.1f held_max %zu wake_us %.1f realtime %s\n",
               l->name, l->way[i].name, (unsigned long long)p->packets, (unsigned long long)p->frames,
               (unsigned long long)p->bytes, (unsigned long long)p->lost, (unsigned long long)p->queue_full,
               (unsigned long long)p->store_full, (unsigned long long)p->refused,
               p->packets ? (double)p->late_sum / 1e3 / (double)p->packets : 0.0, (double)p->late_max / 1e3,
               p->held_max, (double)l->wake / 1e3, l->realtime ? "yes" : "no");
    }
    fflush(stdout);
}

/* False: it is to end. */
static bool signalled(struct line *l) {
    struct signalfd_siginfo s;
    while (read(l->signals, &s, sizeof s) == sizeof s) {
        show(l);
        if (s.ssi_signo != SIGUSR1) return false;
    }
    return true;
}

/* Follows the median of how late a sleep returns. */
static void woke(struct line *l, int64_t late) {
    int64_t step = late > l->wake ? 500 : -500;
    if (late >= 0 && l->wake + step >= 0 && l->wake + step <= WAKE_MAX) l->wake += step;
}

/* Sleeps until something comes or `due` is near; *since is when the sleep began. False: it is to end. */
static bool rest(struct line *l, int64_t due, int64_t *since, bool *slept) {
    struct pollfd fds[3] = {{.fd = l->way[0].from, .events = POLLIN},
                            {.fd = l->way[1].from, .events = POLLIN},
                            {.fd = l->signals, .events = POLLIN}};
    int64_t begun = now_ns(), left = due == NO_DUE ? NO_DUE : due - l->wake - (l->spin ? SPIN_MARGIN : 0) - begun;
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    *slept = false;
    *since = begun;
    if (left <= 0) return true;
    int n = ppoll(fds, 3, due == NO_DUE ? NULL : &timeout, NULL);
    int64_t end = now_ns();
    if (n == 0) woke(l, end - begun - left);
    if (n > 0 && fds[2].revents) return signalled(l);
    /* One that was there before we could fall asleep woke nobody. */
    *slept = n > 0 && end - begun > l->wake;
    return true;
}

static void run(struct line *l) {
    bool slept = false, more[2] = {true, true};
    int64_t due, since = 0;
    unsigned turns = 0;
    do {
        due = NO_DUE;
        for (unsigned i = 0; i < 2; i++) {
            int64_t next = deliver(l, &l->way[i], l->spin ? 0 : l->wake / 2);
            more[i] = receive(l, &l->way[i], slept ? l->wake : 0, since);
            if (next == NO_DUE && l->way[i].used) next = store_head(l, &l->way[i])->due;
            if (next < due) due = next;
        }
        slept = false;
        if (++turns % 4096 == 0 && !signalled(l)) return;
    } while (more[0] || more[1] || rest(l, due, &since, &slept));
}

/* ---- setting up ---- */

static void become(int ns, const char *path) {
    if (setns(ns, CLONE_NEWNET) != 0) die(path, strerror(errno));
}

/* What asks for the speed of a link must find this one's; TUN says 10 Mbit/s of itself. */
static void describe(const struct line *l, struct ifreq *r) {
    struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) die("socket", strerror(errno));
    r->ifr_data = (char *)&cmd;
    if (ioctl(s, SIOCETHTOOL, r) == 0) {
        cmd.cmd = ETHTOOL_SSET;
        ethtool_cmd_speed_set(&cmd, l->rate > 0 ? (uint32_t)(l->rate / 1e6) : 10000);
        cmd.duplex = DUPLEX_FULL;
        if (ioctl(s, SIOCETHTOOL, r) != 0) fprintf(stderr, "delayline: speed of %s: %s\n", l->name, strerror(errno));
    }
    r->ifr_qlen = TX_QUEUE;
    if (ioctl(s, SIOCSIFTXQLEN, r) != 0) die("queue length", strerror(errno));
    close(s);
}

static int tun_open(const struct line *l) {
    int head = (int)HEAD;
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("/dev/net/tun", strerror(errno));
    if (strlen(l->name) >= sizeof r.ifr_name) die(l->name, "too long for the name of an interface");
    strcpy(r.ifr_name, l->name);
    if (ioctl(fd, TUNSETIFF, &r) != 0 || ioctl(fd, TUNSETVNETHDRSZ, &head) != 0) die(l->name, strerror(errno));
    if (ioctl(fd, TUNSETOFFLOAD, l->loss > 0 ? TUN_F_CSUM : TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
        die("offload", strerror(errno));
    describe(l, &r);
    return fd;
}

static void set_up(struct line *l, char *const *path) {
    int ns[2], fd[2];
    sigset_t set;
    struct sched_param priority = {.sched_priority = 2};
    for (unsigned i = 0; i < 2; i++)
        if ((ns[i] = open(path[i], O_RDONLY | O_CLOEXEC)) < 0) die(path[i], strerror(errno));
    for (unsigned i = 0; i < 2; i++) {
        become(ns[i], path[i]);
        fd[i] = tun_open(l);
        close(ns[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct way *w = &l->way[i];
        *w = (struct way){.name = i ? "back" : "there", .from = fd[i], .to = fd[1 - i], .state = l->seed * 2 + i};
        w->store = mmap(NULL, l->store, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (w->store == MAP_FAILED) die("store", strerror(errno));
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    l->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (l->signals < 0) die("signalfd", strerror(errno));
    prctl(PR_SET_TIMERSLACK, 1);
    /* A wire does not wait for its turn. */
    l->realtime = sched_setscheduler(0, SCHED_RR, &priority) == 0;
}

/* The first guess of how late this machine wakes up. */
static void calibrate(struct line *l) {
    for (unsigned i = 0; i < 32; i++) {
        struct timespec t = {.tv_nsec = 500000};
        int64_t from = now_ns();
        nanosleep(&t, NULL);
        int64_t late = now_ns() - from - t.tv_nsec;
        if (i == 0 || late < l->wake) l->wake = late;
    }
    if (l->wake > WAKE_MAX) l->wake = WAKE_MAX;
}

/* ---- the command line ---- */

static double number(const char *text, const char *units, const double *scale, const char *what) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno || !(value >= 0) || value > 1e15) die(what, text);
    if (!*end) return value;
    for (const char *u = units; *u; u += strlen(u) + 1, scale++)
        if (strcasecmp(end, u) == 0) return value * *scale;
    die(what, text);
    return 0;
}

static int64_t a_time(const char *text, const char *what) {
    static const double scale[] = {1e3, 1e6, 1e9};
    char *end;
    if (strtod(text, &end) != 0 && !*end) die(what, "a time needs a unit: us, ms or s");
    return (int64_t)number(text, "us\0ms\0s\0", scale, what);
}

static double a_size(const char *text, const char *what) {
    static const double scale[] = {1024, 1048576, 1073741824};
    return number(text, "k\0m\0g\0", scale, what);
}

static void options(struct line *l, int argc, char **argv) {
    static const struct option list[] = {
        {"rtt", 1, NULL, 'r'},   {"loss", 1, NULL, 'l'},  {"seed", 1, NULL, 's'}, {"rate", 1, NULL, 'b'},
        {"queue", 1, NULL, 'q'}, {"store", 1, NULL, 'm'}, {"spin", 0, NULL, 'p'}, {0}};
    static const double percent[] = {1}, bits[] = {1e3, 1e6, 1e9, 1e6, 1e9};
    double store = 0;
    int c;
    *l = (struct line){.queue = 20000000, .seed = 1};
    while ((c = getopt_long(argc, argv, "", list, NULL)) != -1) switch (c) {
        case 'r': l->delay = a_time(optarg, "--rtt") / 2; break;
        case 'l': l->loss = number(optarg, "%\0", percent, "--loss") / 100; break;
        case 's': l->seed = strtoull(optarg, NULL, 10); break;
        case 'b': l->rate = number(optarg, "k\0m\0g\0mbit\0gbit\0", bits, "--rate"); break;
        case 'q': l->queue = a_time(optarg, "--queue"); break;
        case 'm': store = a_size(optarg, "--store"); break;
        case 'p': l->spin = true; break;
        default: exit(1);
        }
    if (argc - optind != 3) die("usage", "delayline [OPTION ...] NAME NETNS NETNS");
    if (l->loss > 1) die("--loss", "at most 100%");
    l->name = argv[optind];
    l->store = store > 0 ? (size_t)store : ((size_t)8 << 20) + (size_t)l->delay;
    if (l->store < 2 * PACKET_MAX) l->store = 2 * PACKET_MAX;
    l->store &= ~(size_t)15;
}

int main(int argc, char **argv) {
    static struct line line;
    options(&line, argc, argv);
    set_up(&line, argv + optind + 1);
    calibrate(&line);
    puts("ready");
    fflush(stdout);
    run(&line);
    return 0;
}
