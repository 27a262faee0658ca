// An optimiser in C++17 that searches an archgym environment: a (1+1) evolution strategy.
//
//   g++ -std=c++17 -O2 -o search search.cpp
//   archgym serve DRAM-v0 --workload xz --budget 60 --agent es --seed 7 --record designs -- ./search 7
//
// Requests go to standard output and answers come from standard input, one JSON object a line. A
// design is a point of the unit cube, so that no parameter needs to be known here.

#include <algorithm>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

// Sends a request and gives its answer.
std::string call(const std::string& request) {
    std::cout << request << std::endl;
    std::string answer;
    if (!std::getline(std::cin, answer)) std::exit(1);
    return answer;
}

// What follows "key": in an answer. Messages have no blanks, so a search for text finds it.
std::string after(const std::string& answer, const std::string& key) {
    const auto at = answer.find("\"" + key + "\":");
    return at == std::string::npos ? "" : answer.substr(at + key.size() + 3);
}

int main(int, char** arguments) {
    std::mt19937 random(arguments[1] ? std::stoul(arguments[1]) : 0);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;

    const std::string problem = call(R"({"id":0,"op":"describe","protocol":1})");
    const std::string names = after(problem, "unit_axes");  // ["page_policy","arbiter",...]
    const auto end = names.find(']');
    const auto width = std::count(names.begin(), names.begin() + end, ',') + 1;

    std::vector<double> best(width);
    for (double& x : best) x = uniform(random);
    double best_reward = -2, step = 0.3;
    for (int id = 1;; ++id) {
        std::vector<double> trial = best;
        if (id > 1)
            for (double& x : trial) x = std::clamp(x + step * normal(random), 0.0, 1.0);
        std::ostringstream request;
        request.precision(17);
        request << R"({"id":)" << id << R"(,"op":"evaluate","unit":[)";
        for (std::size_t i = 0; i < trial.size(); ++i) request << (i ? "," : "") << trial[i];
        const std::string answer = call(request.str() + "]}");
        if (answer.find("\"ok\":true") == std::string::npos) {  // the budget is spent, or an error
            if (answer.find("budget_exhausted") == std::string::npos) std::cerr << answer << '\n';
            break;
        }
        const double reward = std::stod(after(answer, "reward"));  // larger is better, -1: illegal
        step = std::clamp(step * (reward > best_reward ? 1.5 : 0.95), 0.02, 0.5);
        if (reward >= best_reward) best_reward = reward, best = trial;
    }
    const std::string best_metrics = after(call(R"({"op":"end"})"), "metrics");
    std::cerr << "best: " << best_metrics.substr(0, best_metrics.find('}') + 1) << '\n';
}
