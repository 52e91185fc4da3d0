/* SPDX-License-Identifier: MIT
 *
 * Boxes that do not overlap (non-maximum suppression), on the host: how many there are depends on
 * the values. */
#include "vision.h"

#include <stdlib.h>

/* A box as corners. */
struct box {
    double left, top, right, bottom, area;
};

struct candidate {
    double score;
    int64_t index;
};

double *vision_numbers(tn_tensor *tensor)
{
    tn_tensor *x = tensor != NULL ? tn_cast(tn_tensor_detach(tensor), TN_F64) : NULL;
    size_t count = x != NULL ? (size_t)tn_tensor_numel(x) : 0;
    double *numbers = x != NULL ? tn_calloc(count + 1, sizeof *numbers) : NULL;

    if (numbers == NULL || tn_tensor_copy_out(x, numbers, count * sizeof *numbers) == TN_OK)
        return numbers;
    tn_free(numbers);
    return NULL;
}

/* The best first. NaN is the worst. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    bool x_wrong = x->score != x->score, y_wrong = y->score != y->score;

    if (x_wrong != y_wrong)
        return x_wrong ? 1 : -1;
    if (!x_wrong && x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static struct box box_at(const double *numbers, bool from_centres)
{
    struct box box;
    double a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];

    if (from_centres)
        box = (struct box){ a - c / 2, b - d / 2, a + c / 2, b + d / 2, 0 };
    else
        box = (struct box){ a < c ? a : c, b < d ? b : d, a < c ? c : a, b < d ? d : b, 0 };
    box.area = (box.right - box.left) * (box.bottom - box.top);
    return box;
}

static bool overlaps(const struct box *a, const struct box *b, double most)
{
    double left = a->left > b->left ? a->left : b->left;
    double top = a->top > b->top ? a->top : b->top;
    double right = a->right < b->right ? a->right : b->right;
    double bottom = a->bottom < b->bottom ? a->bottom : b->bottom;
    double common;

    if (!(right > left) || !(bottom > top))
        return false;
    common = (right - left) * (bottom - top);
    return common / (a->area + b->area - common) > most;
}

int64_t vision_suppress(const double *boxes, const double *scores, int64_t n,
                        const struct vision_suppression *how, int64_t *kept)
{
    struct candidate *all = tn_calloc((size_t)n + 1, sizeof *all);
    struct box *chosen = tn_calloc((size_t)n + 1, sizeof *chosen);
    int64_t candidates = 0, count = all != NULL && chosen != NULL ? 0 : -1;

    for (int64_t i = 0; i < n && count == 0; i++)
        if (scores[i] > how->least || how->least < -1e308)
            all[candidates++] = (struct candidate){ scores[i], i };
    if (count == 0)
        qsort(all, (size_t)candidates, sizeof *all, compare);
    for (int64_t i = 0; i < candidates && count >= 0 && count < how->most; i++) {
        struct box box = box_at(boxes + 4 * all[i].index, how->from_centres);
        int64_t other = 0;

        while (other < count && !overlaps(&box, &chosen[other], how->overlap))
            other++;
        if (other < count)
            continue;
        chosen[count] = box;
        kept[count++] = all[i].index;
    }
    tn_free(all);
    tn_free(chosen);
    return count;
}
