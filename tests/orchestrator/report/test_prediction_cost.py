"""The section on the cost of a prediction: tables, figure, and no section without times."""

import pandas as pd
import pytest

from orchestrator.analysis.findings import analyse
from orchestrator.report import write_report
from orchestrator.report.sections import prediction_cost
from tests.orchestrator.report.frames import make_results

MEANS = {"a": {"whole": 0.95, "tenth": 0.94}, "b": {"whole": 0.85, "tenth": 0.86}}
SECONDS = {"whole": 5.0, "tenth": 1.0}


@pytest.mark.figures("prediction_cost")
def test_the_section_is_on_the_page(tmp_path):
    results = make_results(tmp_path, MEANS, profile="timing", seconds=SECONDS)
    page = write_report(results, tmp_path / "report").read_text()
    assert prediction_cost.TITLE in page
    assert (tmp_path / "report" / "figures" / "prediction_cost.svg").is_file()
    tables = tmp_path / "report" / "tables"
    assert pd.read_csv(tables / "speed_ups.csv")["reference"].tolist() == ["tenth"]
    costs = pd.read_csv(tables / "prediction_costs.csv")
    assert costs["speed_up"].tolist() == pytest.approx([1.0, 5.0, 1.0, 5.0])


def test_speed_ups_have_two_digits_and_their_captions_name_the_machine(tmp_path):
    seconds = {"whole": 51.2345, "tenth": 1.0}
    results = make_results(tmp_path, MEANS, profile="timing", seconds=seconds)
    results.provenance[0]["hosts"] = [{"cpu": "Processor X", "cores": 2, "memory_gb": 8}]
    section = prediction_cost.section(analyse(results))
    tables = {part.name: part for part in section.content if hasattr(part, "rows")}
    (row,) = tables["speed_ups"].rows
    assert row[2].text.split()[0] == "51"
    assert row[3].text.split()[0] == "51"
    assert "51.23" not in str(tables["prediction_costs"].rows)
    for table in tables.values():
        assert "one kind of machine" in table.caption


def test_no_section_without_times(tmp_path):
    assert prediction_cost.section(analyse(make_results(tmp_path, MEANS))) is None
