#include "common/output/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 72, COLUMNS_MIN = 40 };

int wlb_terminal_width(void)
{
	struct winsize size;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int wlb_terminal_columns(void)
{
	int width = wlb_terminal_width();
	return width >= COLUMNS_MIN ? width : COLUMNS_DEFAULT;
}

bool wlb_terminal_unicode(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
