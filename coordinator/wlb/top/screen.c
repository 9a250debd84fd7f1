#include "coordinator/wlb/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* xterm's alternate screen, and a cursor that is not shown: terminals of today and terminal multiplexers have both. */
#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

static void print_codes(const char *codes)
{
	fputs(codes, stdout);
	fflush(stdout);
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

/* Keys are read one by one and not shown. Ctrl-C and Ctrl-Z stay signals. */
static void enter(const struct wlb_screen *screen)
{
	struct termios modes = screen->modes_before;
	modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	modes.c_cc[VMIN] = 0;
	modes.c_cc[VTIME] = 0;
	if (screen->has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
	print_codes(ENTER);
}

static void leave(const struct wlb_screen *screen)
{
	print_codes(LEAVE);
	if (screen->has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->modes_before);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static int add_source(int events_fd, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(events_fd, EPOLL_CTL_ADD, fd, &readable);
}

static void close_events(const struct wlb_screen *screen)
{
	if (screen->events_fd >= 0)
		close(screen->events_fd);
	if (screen->signal_fd >= 0)
		close(screen->signal_fd);
	sigprocmask(SIG_SETMASK, &screen->signals_before, NULL);
}

int wlb_screen_open(struct wlb_screen *screen, struct wlb_error *error)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	sigset_t signals;
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&signals, numbers[i]);
	*screen = (struct wlb_screen){.ended_by = 0};
	screen->has_keys = tcgetattr(STDIN_FILENO, &screen->modes_before) == 0;
	sigprocmask(SIG_BLOCK, &signals, &screen->signals_before);
	screen->events_fd = epoll_create1(EPOLL_CLOEXEC);
	screen->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (screen->events_fd < 0 || screen->signal_fd < 0 || add_source(screen->events_fd, screen->signal_fd) != 0 ||
	    (screen->has_keys && add_source(screen->events_fd, STDIN_FILENO) != 0)) {
		wlb_fail(error, "the terminal's events cannot be read: %s", strerror(errno));
		close_events(screen);
		return -1;
	}
	enter(screen);
	return 0;
}

void wlb_screen_close(struct wlb_screen *screen)
{
	leave(screen);
	if (screen->ended_by != 0)
		raise(screen->ended_by); /* it is blocked until the signals are as before */
	close_events(screen);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Ctrl-Z: the shell gets its terminal back until it continues this process. */
static void suspend(const struct wlb_screen *screen)
{
	leave(screen);
	raise(SIGSTOP);
	enter(screen);
}

static enum wlb_screen_event read_signal(struct wlb_screen *screen)
{
	struct signalfd_siginfo info;
	if (read(screen->signal_fd, &info, sizeof(info)) != sizeof(info))
		return WLB_SCREEN_NONE;
	switch (info.ssi_signo) {
	case SIGINT:
		return WLB_SCREEN_QUIT;
	case SIGTSTP:
		suspend(screen);
		return WLB_SCREEN_DRAW;
	case SIGWINCH:
		return WLB_SCREEN_DRAW;
	default:
		screen->ended_by = (int)info.ssi_signo;
		return WLB_SCREEN_ENDED;
	}
}

/* Other keys do nothing. */
static enum wlb_screen_event read_keys(void)
{
	char keys[64];
	ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));
	if (count <= 0)
		return count < 0 && errno == EINTR ? WLB_SCREEN_NONE : WLB_SCREEN_QUIT;
	bool is_quit = memchr(keys, 'q', (size_t)count) != NULL || memchr(keys, 'Q', (size_t)count) != NULL;
	return is_quit ? WLB_SCREEN_QUIT : WLB_SCREEN_NONE;
}

enum wlb_screen_event wlb_screen_wait(struct wlb_screen *screen, int ms)
{
	struct pollfd ready[2] = {{.fd = screen->signal_fd, .events = POLLIN},
	                          {.fd = screen->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
	enum wlb_screen_event event = WLB_SCREEN_NONE;
	if (poll(ready, 2, ms) <= 0)
		return WLB_SCREEN_NONE;
	if (ready[0].revents != 0)
		event = read_signal(screen);
	if (event == WLB_SCREEN_NONE && ready[1].revents != 0)
		event = read_keys();
	return event;
}

bool wlb_screen_has_event(const struct wlb_screen *screen)
{
	struct pollfd ready = {.fd = screen->events_fd, .events = POLLIN};
	return poll(&ready, 1, 0) > 0;
}

void wlb_screen_size(int *columns, int *rows)
{
	struct winsize size = {0};
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col > 0 ? size.ws_col : 80;
	*rows = size.ws_row > 0 ? size.ws_row : 24;
}
