#include "planner/cli/svg.h"

struct colour {
	int red, green, blue;
};

/* Okabe and Ito's palette, which people with red-green colour blindness can distinguish. */
static const struct colour inks[] = {
	[WLB_INK_BLUE] = {0, 114, 178}, [WLB_INK_ORANGE] = {230, 159, 0},   [WLB_INK_GREEN] = {0, 158, 115},
	[WLB_INK_RED] = {213, 94, 0},   [WLB_INK_PURPLE] = {204, 121, 167}, [WLB_INK_GREY] = {90, 90, 90},
};

int wlb_svg_begin(struct wlb_svg *svg, const char *path, double width, double height, struct wlb_error *error)
{
	if (wlb_atomic_file_open(&svg->file, path, error) < 0)
		return -1;
	fprintf(svg->file.out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
	        "font-family=\"sans-serif\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
	        width, height, width, height);
	return 0;
}

static void print_escaped(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else
			fputc(*text, out);
	}
}

static int shaded(int ink, double shade)
{
	double strength = 0.25 + 0.75 * (shade < 0.0 ? 0.0 : shade > 1.0 ? 1.0 : shade);
	return (int)(255.0 - (255.0 - ink) * strength);
}

void wlb_svg_box(struct wlb_svg *svg, double x, double y, double width, double height, enum wlb_ink ink, double shade,
                 const char *title)
{
	fprintf(svg->file.out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%02x%02x%02x\"", x,
	        y, width, height, shaded(inks[ink].red, shade), shaded(inks[ink].green, shade),
	        shaded(inks[ink].blue, shade));
	if (width > 2.0)
		fputs(" stroke=\"white\" stroke-width=\"0.5\"", svg->file.out);
	if (title == NULL) {
		fputs("/>\n", svg->file.out);
		return;
	}
	fputs("><title>", svg->file.out);
	print_escaped(svg->file.out, title);
	fputs("</title></rect>\n", svg->file.out);
}

void wlb_svg_line(struct wlb_svg *svg, double x0, double y0, double x1, double y1)
{
	fprintf(svg->file.out,
	        "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#444\" stroke-width=\"1\" "
	        "stroke-dasharray=\"4 3\"/>\n",
	        x0, y0, x1, y1);
}

void wlb_svg_text(struct wlb_svg *svg, double x, double y, double size, enum wlb_svg_align align, const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	fprintf(svg->file.out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" text-anchor=\"%s\">", x, y, size,
	        anchors[align]);
	print_escaped(svg->file.out, text);
	fputs("</text>\n", svg->file.out);
}

int wlb_svg_commit(struct wlb_svg *svg, struct wlb_error *error)
{
	fputs("</svg>\n", svg->file.out);
	return wlb_atomic_file_commit(&svg->file, error);
}
