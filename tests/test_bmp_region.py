"""The error region: geometry, membership, uniform draws, and the one-to-one link with the parameters."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kstest
from test_bmp_exact import laws

from lethe_lib.bmp import (
    best_vertex,
    count_parameters,
    error_region,
    errors_of,
    exact_bounds,
    node_laws,
    prior_bounds,
    smallest_parameters,
)
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

PARAMETER = st.floats(0.01, 6.0)
PRIOR = st.floats(0.02, 0.98)
COORDINATE = st.floats(0.0, 1.0)


def polygon_area(corners):
    """Shoelace formula: an area that knows nothing of likelihood ratios."""
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


@pytest.mark.parametrize(
    ("lower", "upper", "area"),
    [(1 / 2, 2, 1 / 3), (0.1, 1.3, 0.225), (0.9, 30, 0.09965635738831613), (0, 4, 3 / 4), (0.2, inf, 0.8), (0, inf, 1)],
)
def test_areas(lower, upper, area):
    with np.errstate(divide="ignore"):
        region = error_region(-np.log(lower), np.log(upper))
    assert region.area == pytest.approx(area, abs=1e-12)
    assert polygon_area(region.vertices) == pytest.approx(area, abs=1e-12)


def test_symmetric_region():
    region = error_region(1.3, 1.3)
    assert np.allclose(region.vertex, 1 / (1 + np.exp(1.3)), rtol=0, atol=1e-15)
    assert region.area == pytest.approx(np.tanh(0.65), abs=1e-15)


def test_one_node_example():
    region = error_region(log(12), log(3 / 4), prior=1 / 5, form="odds")
    assert np.allclose(region.vertex, 1 / 4, rtol=0, atol=1e-12)
    assert region.area == pytest.approx(1 / 2, abs=1e-12)
    assert np.allclose(region.parameters("ratio"), log(3), rtol=0, atol=1e-12)
    joint = error_region(log(12), log(3 / 4), prior=1 / 5, form="odds", joint=True)
    assert np.allclose(joint.vertices[1], (4 / 5 / 4, 1 / 5 / 4), rtol=0, atol=1e-12)
    assert joint.area == pytest.approx(4 / 50, abs=1e-12)


def test_one_sided_regions():
    right_only = error_region(inf, log(4))
    assert right_only.contains(0.25, 0.0) and not right_only.contains(0.24, 0.0)  # beta >= 1 - U alpha
    assert right_only.contains(0.75, 1.0) and not right_only.contains(0.76, 1.0)  # beta <= U (1 - alpha)
    left_only = error_region(log(5), inf)
    assert left_only.contains(0.0, 0.2) and not left_only.contains(0.0, 0.19)
    assert np.allclose(left_only.vertex, (0.0, 0.2))


def test_tiny_parameters_keep_their_precision():
    region = error_region(1e-9, 3e-9)
    # Second order is negligible: area = ab/(a+b), alpha* = a/(a+b).
    assert region.area == pytest.approx(0.75e-9, rel=1e-8)
    assert region.vertex[0] == pytest.approx(0.25, rel=1e-8)


@pytest.mark.parametrize("side", [(0.0, 0.0), (0.0, 2.0), (2.0, 0.0)])
def test_one_zero_parameter_leaves_the_segment(side):
    """With L = 1 or U = 1 the ratio is constant: all three pairs describe the same algorithms and the same segment."""
    region = error_region(*side)
    assert region.area == 0
    assert region.contains(0.3, 0.7, 1e-12) and not region.contains(0.3, 0.69, 1e-12)
    assert np.allclose(smallest_parameters(0.3, 0.7), 0.0, atol=1e-12)
    alpha, beta = region.draw(numpy_generator(0, "segment"), 4000)
    assert np.allclose(alpha + beta, 1)
    assert kstest(alpha, "triang", args=(0.5,)).pvalue > 1e-3
    with pytest.raises(InputError, match="without interior"):
        region.coordinates(0.3, 0.7)


@given(PARAMETER, PARAMETER, PRIOR, st.sampled_from(["ratio", "odds"]), st.booleans())
def test_parameters_and_regions_correspond_one_to_one(excess_left, excess_right, prior, form, joint):
    shift = log(prior / (1 - prior)) if form == "odds" else 0.0
    given_parameters = (excess_left - shift, excess_right + shift)
    region = error_region(*given_parameters, prior, form, joint)
    assert np.allclose(region.parameters(form), given_parameters, rtol=0, atol=1e-12)
    # From the corner alone back to the parameters, and from those to the same corner.
    corner = region.vertices[1] / region.scale
    again = smallest_parameters(*np.clip(corner, 0, 1), prior, form)
    assert np.allclose(again, given_parameters, rtol=1e-9, atol=1e-9)
    assert np.allclose(error_region(*again, prior, form, joint).vertices, region.vertices, rtol=0, atol=1e-9)
    assert region.area == pytest.approx(polygon_area(region.vertices), abs=1e-12)


@given(PARAMETER, PARAMETER, PARAMETER, PARAMETER)
def test_different_parameters_have_different_regions(a, b, c, d):
    assume(abs(a - c) > 1e-6 or abs(b - d) > 1e-6)
    assert not np.allclose(error_region(a, b).vertices, error_region(c, d).vertices, rtol=0, atol=1e-13)


@given(COORDINATE, COORDINATE)
def test_smallest_parameters_are_the_smallest(alpha, beta):
    left, right = smallest_parameters(alpha, beta)
    assert error_region(left, right).contains(alpha, beta, 1e-12)
    for smaller in ((left * 0.9, right), (left, right * 0.9)):
        # When one of the two is 0 the region is a segment and the point lies on it.
        if min(left, right) > 1e-6 and np.isfinite([left, right]).all() and max(left, right) < 20:
            assert not error_region(*smaller).contains(alpha, beta)


@given(st.floats(0.001, 0.49), st.floats(0.001, 0.49))
def test_a_point_is_the_corner_of_its_smallest_region(alpha, beta):
    assert np.allclose(error_region(*smallest_parameters(alpha, beta)).vertex, (alpha, beta), rtol=0, atol=1e-9)


@given(laws())
def test_all_tests_lie_in_the_region_and_determine_it(case):
    """Both directions on an actual algorithm: its tests stay inside, and all of them together give L and U back."""
    law, table = case
    for form in ("ratio", "odds"):
        bounds = exact_bounds(law, table)
        left, right = bounds.parameters(form)
        for k, node in enumerate(bounds.nodes):
            tests = node_laws(law, table, node)
            outputs = list(tests.ratios())
            errors = np.array(
                [
                    [float(e) for e in errors_of(tests, {w: bool(mask >> j & 1) for j, w in enumerate(outputs)})]
                    for mask in range(2 ** len(outputs))
                ]
            )
            region = error_region(left[k], right[k], bounds.prior[k], form)
            assert region.contains(*errors.T, tolerance=1e-12).all()
            observed = smallest_parameters(*errors.T, bounds.prior[k], form)
            assert observed.left.max() == pytest.approx(left[k], abs=1e-9)
            assert observed.right.max() == pytest.approx(right[k], abs=1e-9)
            exact = bounds.exact[k]
            if exact.lower < 1:
                assert np.allclose(region.vertex, [float(e) for e in best_vertex(exact.lower, exact.upper)], atol=1e-12)


@given(PARAMETER, PARAMETER, PRIOR, COORDINATE, COORDINATE, st.booleans())
def test_the_parallelogram_map_stays_inside_and_inverts(left, right, prior, u, v, joint):
    region = error_region(left, right, prior, joint=joint)
    assume(region.area > 1e-4)
    point = region.at(u, v)
    assert region.contains(*point, tolerance=1e-9)
    assert np.allclose(region.coordinates(*point), (u, v), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("left", "right", "joint"), [(1.0, 2.0, False), (0.1, 0.3, True), (3.0, 0.2, False), (inf, 1.0, False)]
)
def test_draws_are_uniform(left, right, joint):
    region = error_region(left, right, prior=0.3, joint=joint)
    alpha, beta = region.draw(numpy_generator(1, "draws", left, right), 5000)
    assert region.contains(alpha, beta, tolerance=1e-12).all()
    u, v = region.coordinates(alpha, beta)
    assert kstest(u, "uniform").pvalue > 1e-3 and kstest(v, "uniform").pvalue > 1e-3
    # An oracle without the map: points of the unit square kept when they lie inside have the same marginal laws.
    square = numpy_generator(2, "square").random((400_000, 2)) * region.scale
    kept = square[region.contains(*square.T)]
    assert len(kept) / len(square) == pytest.approx(float(region.area / np.prod(region.scale)), abs=0.005)
    assert kstest(alpha, kept[:, 0]).pvalue > 1e-3 and kstest(beta, kept[:, 1]).pvalue > 1e-3


def test_vectorised_over_nodes():
    priors = np.array([0.2, 0.5, 0.7])
    bound = prior_bounds(priors)
    left, right = bound.left + [1.0, 2.0, 0.5], bound.right + [0.3, 1.0, 2.0]
    regions = error_region(left, right, priors, "odds", joint=True)
    assert regions.vertices.shape == (3, 4, 2) and regions.area.shape == (3,)
    alpha, beta = regions.draw(numpy_generator(0, "nodes"), 7)
    assert alpha.shape == beta.shape == (7, 3)
    assert regions.contains(alpha, beta, 1e-12).all()
    for k in range(3):
        one = error_region(left[k], right[k], priors[k], "odds", joint=True)
        assert np.allclose(one.vertices, regions.vertices[k], rtol=0, atol=1e-15)


def test_the_region_depends_on_the_prior_under_the_odds_form_only():
    conditional = [[error_region(2.0, 2.0, prior, form).area for prior in (0.3, 0.5)] for form in ("ratio", "odds")]
    assert conditional[0][0] == conditional[0][1] and conditional[1][0] != conditional[1][1]
    joint = [error_region(2.0, 2.0, prior, "ratio", joint=True).area for prior in (0.3, 0.5)]
    assert joint[0] != joint[1]


def test_parameters_from_counts_of_joint_draws():
    # 200 draws with prior 1/5 and both errors 1/4: TP = 30, FN = 10, FP = 40, TN = 120.
    odds = count_parameters(30, 40, 120, 10)
    assert np.allclose(odds, (log(12), log(3 / 4)), rtol=0, atol=1e-12)
    assert np.allclose(odds, smallest_parameters(0.25, 0.25, 0.2, "odds"), rtol=0, atol=1e-12)
    never_member = count_parameters(0, 0, 160, 40)  # says nothing beyond the prior
    assert np.allclose(never_member, (log(4), -log(4)), rtol=0, atol=1e-12)


def test_extreme_observations():
    assert smallest_parameters(0.0, 1.0) == smallest_parameters(1.0, 0.0) == (0.0, 0.0)
    assert smallest_parameters(0.0, 0.5) == (pytest.approx(log(2)), inf)
    assert smallest_parameters(0.5, 0.0) == (inf, pytest.approx(log(2)))
    assert smallest_parameters(0.0, 0.0) == (inf, inf)


def test_bad_input():
    with pytest.raises(InputError, match=r"the prior bound log\(prior odds\) = 0.847298.*region is empty"):
        error_region(2.0, 0.5, prior=0.7, form="odds")
    with pytest.raises(InputError, match="needs the prior"):
        error_region(1.0, 1.0, form="odds")
    with pytest.raises(InputError, match="joint errors"):
        error_region(1.0, 1.0, joint=True)
    with pytest.raises(InputError, match="leave degenerate nodes out"):
        error_region(1.0, 1.0, prior=[0.5, 1.0], form="odds")
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        error_region(1.0, 1.0, prior=0.0)
    with pytest.raises(InputError, match=r"error rates must lie in \[0, 1\]"):
        smallest_parameters(-0.1, 0.5)
    with pytest.raises(InputError, match="counts must not be negative"):
        count_parameters(1, -1, 2, 3)
